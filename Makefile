PYTHON ?= python

.PHONY: check slow lint fuzz fuzz-duckdb fuzz-syntax fuzz-logs fuzz-results fuzz-spark fuzz-windows w3c-spark combinations sanitize soak-pages kill-loads kill-streams full-disks power-cuts kill-queries kill-runs kill-brokers logs-brokers kill-grpc kill-kafka kill-flows hdfs loads-at-once soak-relay calls-mcp image-test soak-windows editor bench benchmark-suite load docs screenshots

# everything; `pytest -n 3` alone leaves out the slow tests and takes two minutes or little more
check: lint
	$(PYTHON) -m pytest -q -n 3
	$(MAKE) slow

# the slow tests, but those of the layers, which `make lint` runs. Those of Spark share one session, which takes long to
# start, and longer to be quick: they come first where processors are short, and what they print comes at the end. Of a
# test that hangs, the stacks of all threads are shown and the process ends; the others go on
SLOW = $(PYTHON) -m pytest -q -o faulthandler_timeout=1800 -o faulthandler_exit_on_timeout=true
slow:
	spark=$$(mktemp); \
	$(SLOW) -n 1 -m "slow and spark" tests >"$$spark" 2>&1 & \
	nice -n 2 $(SLOW) -n 3 -m "slow and not spark" --ignore tests/test_layers.py tests; rest=$$?; \
	wait $$!; status=$$?; cat "$$spark"; rm "$$spark"; exit $$((status | rest))

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest -q tests/test_layers.py

# the documentation site, into site/; needs the extra `docs`
docs:
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

# the pictures of the page in the documentation; needs Chromium and npm's playwright-core
screenshots:
	$(PYTHON) -m pytest -q -n 0 --combinations --screenshots docs/images -k screenshots tests/server

# the property tests at length: twenty times the examples
fuzz:
	$(PYTHON) -m pytest -q --hypothesis-profile=long -m hypothesis tests

# 20,000 broken queries, read by this package, pyoxigraph and rdflib
fuzz-syntax:
	MUTANTS=20000 $(PYTHON) -m pytest -q -n 0 tests/query/syntax/test_differences.py

# 100,000 broken logs for every decoder, in a bounded memory
fuzz-logs:
	ulimit -v 6291456; $(PYTHON) -m pytest -q -n 0 --inputs 100000 tests/logs/hostile/test_fuzz.py -k whatever

# 1,000 tables of 50,000 solutions, of all kinds of terms, for every decoder of results: an hour and a half
fuzz-results:
	$(PYTHON) -m pytest -q -n 0 --tables 1000 tests/sparql/results/test_decoders.py -k long_tables

# random queries over windows and their streams, maintained and asked as a whole; and as many that Jena judges, too, if it
# is there. Of one core: 10,000 take three minutes, and five with Jena; WINDOWS=100000 takes ten times as long
WINDOWS = 10000
fuzz-windows:
	WINDOWS=$(WINDOWS) $(PYTHON) -m pytest -q -s -n 0 --slow tests/continuous/maintenance/test_differential.py -k "at_length or jena"

# every query evaluation test of the W3C on Spark, of which the other runs ask an eighth
w3c-spark:
	$(PYTHON) -m pytest -q -n 2 --w3c all tests/spark/test_w3c.py

# thousands of random queries on Spark, beside pyoxigraph and the embedded path: an hour or two
fuzz-spark:
	$(PYTHON) -m pytest -q -s -n 0 --hypothesis-profile=thousands tests/spark/test_random.py

# 20,000 random queries on DuckDB, beside pyoxigraph: half an hour of one core. QUERIES=1000 asks fewer
QUERIES = 20000
fuzz-duckdb:
	$(PYTHON) -m pytest -q -n 0 --queries $(QUERIES) tests/sparql/relational/test_random.py

# loads of a table of quads, killed at 40 random points
kill-loads:
	$(PYTHON) -m pytest -q -n 0 --kills 40 tests/sparql/relational/test_quads.py -k killed

# the bundle of CodeMirror for the page, in the package; needs npm
editor:
	$(PYTHON) -m tests.support.pages.bundle

# tests of the product of several parameters, of which the other runs ask a part
combinations:
	$(PYTHON) -m pytest -q -n 4 --slow --combinations -m one_in tests

# the compiled module with the address and undefined-behaviour sanitizers, on input that is cut and changed at every byte;
# needs gcc and its libasan. Afterwards the module is built as usual
SANITIZED = -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
sanitize:
	CFLAGS="$(SANITIZED)" LDFLAGS="-fsanitize=address,undefined" $(PYTHON) hatch_build.py
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0 $(PYTHON) -m pytest -q -n 0 -p no:faulthandler --combinations \
	  tests/logs/turtle/test_compiled.py tests/logs/lines/test_compiled.py tests/logs/jelly/test_compiled.py; \
	status=$$?; $(PYTHON) hatch_build.py; exit $$status

# results in pages from Virtuoso, 60 times each of a dozen queries: an hour
soak-pages:
	$(PYTHON) -m pytest -q -s -n 0 --rounds 60 tests/sparql/sources/test_paged_engines.py -k again_and_again

# a server of streams, killed at 100 random points under 20 publishers and 20 followers
kill-streams:
	$(PYTHON) -m pytest -q -s -n 0 --kills 100 tests/server/streams/test_kills.py

# full disks under publishers that never stop, 20 of them: four minutes
full-disks:
	$(PYTHON) -m pytest -q -s -n 0 --rounds 10 tests/server/streams/disk/test_full_disk.py -k go_on

# an executor of a cluster of two, killed 20 times each with rows kept on two executors and in a folder: ten minutes
kill-executors:
	$(PYTHON) -m pytest -q -s -n 0 --kills 20 tests/spark/test_lost_executors.py

# runs of logs on HDFS in a process of its own: needs CONSTRUCT_MESSAGES_HDFS, a folder with the jars of
# tests/support/engines/hdfs.xml (mvn dependency:copy-dependencies) and libhdfs.so, and JAVA_HOME
hdfs:
	$(PYTHON) -m pytest -q -n 0 tests/spark/logs/test_hdfs.py

# 120 loads into one table at once, by Spark and by processes of DuckDB
loads-at-once:
	$(PYTHON) -m pytest -q -s -n 0 --rounds 10 tests/spark/quads/test_concurrency.py

# streaming queries of Spark, into a folder, a stream and a topic of Kafka, and over windows, killed and started again
# from their checkpoints
kill-flows:
	$(PYTHON) -m pytest -q -s -n 0 --kills 80 tests/spark/logs/test_stream_kills.py tests/spark/windows/test_kills.py

# 10,200 states of a disk after a power cut, for each kind of file that is to survive one: four minutes of a processor
power-cuts:
	$(PYTHON) -m pytest -q -n 2 --cuts 1700 tests/rdf/files/test_power_cuts.py

# a server with registered queries, killed at 50 random points
kill-queries:
	$(PYTHON) -m pytest -q -s -n 0 --kills 50 tests/server/streams/test_query_kills.py

# a run over pages of an endpoint, killed a hundred times and resumed
kill-runs:
	$(PYTHON) -m pytest -q -s -n 0 --kills 100 tests/sparql/sources/http/test_resuming.py

# a server, a publisher and a subscriber that talk gRPC, killed 51 times
kill-grpc:
	$(PYTHON) -m pytest -q -s -n 0 --kills 34 tests/feeds/grpc/test_kills.py

# a relay killed at 50 random points for each pair of kinds, and a log of 20,000 messages for each: half an hour on two
# idle cores, with a table at the end; needs the brokers. PAIRS="kafka-nats or log-mqtt" chooses some
soak-relay:
	$(PYTHON) -m pytest -v -n 2 --kills $(or $(KILLS),50) $(if $(PAIRS),-k "$(PAIRS)") tests/feeds/test_relay_kills.py

# Kafka's broker, publishers and subscribers, each killed 50 times or once more, and 20,000 messages with large ones
kill-kafka:
	$(PYTHON) -m pytest -q -s -n 0 --kills 51 tests/feeds/brokers/kafka/test_kills.py

# Mosquitto and the NATS server, killed 50 times each under a writer and a reader
kill-brokers:
	$(PYTHON) -m pytest -q -s -n 0 --kills 25 tests/feeds/brokers/mqtt/test_kills.py tests/feeds/brokers/nats/test_kills.py

# logs of 20,000 messages through Mosquitto, the NATS server and our service of gRPC
logs-brokers:
	$(PYTHON) -m pytest -q -n 0 --messages 20000 -k test_a_log tests/feeds/brokers/mqtt tests/feeds/brokers/nats tests/feeds/grpc

# the container image, built without a registry of images and tried; as root, with mmdebstrap and buildah: three minutes
export BUILDAH_ISOLATION = chroot
export STORAGE_DRIVER = vfs
image-test:
	bash docs/container/build.sh construct-messages
	buildah inspect --type image construct-messages >$(or $(TMPDIR),/tmp)/image.json
	container=$$(buildah from construct-messages); root=$$(buildah mount $$container); \
	cp $(or $(TMPDIR),/tmp)/image.json $$(dirname $$root)/image.json; \
	$(PYTHON) -m pytest -q -s -n 0 --image $$root tests/docs/test_image.py; status=$$?; \
	buildah rm $$container >/dev/null; exit $$status

# 10,000 calls of the server for AI agents, no message cut in any
calls-mcp:
	$(PYTHON) -m pytest -q -n 0 --calls 10000 -k many_calls tests/server/test_mcp.py

# windows over ten million messages, in one process and at a server: some hours
soak-windows:
	nice -n 10 $(PYTHON) -m benchmarks micro windows_soak
	nice -n 10 $(PYTHON) -m benchmarks micro windows_soak --server

bench:
	$(PYTHON) -m benchmarks micro brokers
	$(PYTHON) -m benchmarks micro columns
	$(PYTHON) -m benchmarks micro continuous
	$(PYTHON) -m benchmarks micro doubles
	$(PYTHON) -m benchmarks micro dumps --triples 1000000 3000000
	$(PYTHON) -m benchmarks micro embedded
	$(PYTHON) -m benchmarks micro grpc
	$(PYTHON) -m benchmarks micro kafka
	$(PYTHON) -m benchmarks micro memory
	$(PYTHON) -m benchmarks micro page
	$(PYTHON) -m benchmarks micro proxy
	$(PYTHON) -m benchmarks micro publishing
	$(PYTHON) -m benchmarks micro shapes
	$(PYTHON) -m benchmarks micro shacl
	$(PYTHON) -m benchmarks micro start
	$(PYTHON) -m benchmarks micro spark
	$(PYTHON) -m benchmarks micro spark_joins
	$(PYTHON) -m benchmarks micro stream_server followers
	$(PYTHON) -m benchmarks micro stream_server million
	$(PYTHON) -m benchmarks micro paging
	$(PYTHON) -m benchmarks micro parsing

# DBpedia-shaped data, what people do today beside this package, and docs/benchmarks/ from it: twenty minutes on two idle cores
benchmark-suite:
	$(PYTHON) -m benchmarks run --profile default
	$(PYTHON) -m benchmarks report benchmarks/results/suite-default.json

# 200 clients at once, and thousands that leave
load:
	$(PYTHON) -m pytest -q -n 0 --clients 200 --leavers 400 tests/server/test_load.py
