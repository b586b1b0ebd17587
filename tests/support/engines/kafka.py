"""A broker of Apache Kafka on loopback: one node in KRaft mode, which can be killed and started again on its data.

It has two listeners: `address`, without TLS, where everybody may do everything; and `secured`, with TLS and passwords,
where `admin` may do everything and `guest` nothing. Its jars lie in the folder that an environment variable names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from tests.support.engines.servers import Missing, free_port, program, running
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

KAFKA: Final = "CONSTRUCT_MESSAGES_KAFKA"
"""The environment variable that names the folder of Kafka's jars."""

PASSWORDS: Final = {"admin": "admin-secret", "guest": "guest-secret"}
"""The users of the secured listener."""

_USERS: Final = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())

# As little as one node can have of everything; the session is that of the node itself after it was killed.
_PROPERTIES: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAIN://127.0.0.1:{plain},SECURED://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAIN://127.0.0.1:{plain},SECURED://localhost:{secured}
listener.security.protocol.map=PLAIN:PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
listener.name.secured.sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config=\
  org.apache.kafka.common.security.plain.PlainLoginModule required {users};
listener.name.secured.ssl.keystore.location={place}/keys.p12
listener.name.secured.ssl.keystore.password=changeit
listener.name.secured.ssl.keystore.type=PKCS12
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin
log.dirs={place}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
broker.session.timeout.ms=3000
"""

_JAVA: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Kafka:
    """A broker.

    Args:
        place: the folder of its files.

    Raises:
        Missing: its jars or Java are not on this machine.
    """

    def __init__(self, place: Path) -> None:
        folder = Path(os.environ.get(KAFKA, "nowhere"))
        if not folder.is_dir():
            pom = "tests/support/engines/kafka.xml"
            raise Missing(
                f"Kafka is not installed: mvn -f {pom} dependency:copy-dependencies -DoutputDirectory=FOLDER, and "
                f"{KAFKA}=FOLDER in the environment"
            )
        java = program("java", "apt-get install openjdk-17-jre-headless")
        self._java = [java, *_JAVA, "-cp", f"{folder}/*"]
        self._place = place
        self._ports = [free_port() for _ in range(3)]
        self._running = ExitStack()
        plain, secured, controller = self._ports
        self.address = f"127.0.0.1:{plain}"
        self.secured = f"localhost:{secured}"
        (place / "server.properties").write_text(
            _PROPERTIES.format(
                plain=plain, secured=secured, controller=controller, users=_USERS, place=place
            )
        )
        self._make_keys()
        format_storage = ["kafka.tools.StorageTool", "format", "--cluster-id", "construct-messages"]
        self._run([*self._java, *format_storage, "--config", "server.properties"])

    def _run(self, command: list[str]) -> None:
        subprocess.run(command, cwd=self._place, check=True, capture_output=True)

    def _make_keys(self) -> None:
        keytool = program("keytool", "apt-get install openjdk-17-jre-headless")
        store = ["-keystore", "keys.p12", "-storetype", "PKCS12", "-storepass", "changeit"]
        pair = [
            "-genkeypair",
            "-keyalg",
            "EC",
            "-dname",
            "CN=localhost",
            "-ext",
            "san=dns:localhost",
        ]
        self._run([keytool, *pair, "-alias", "broker", *store])
        self._run(
            [keytool, "-exportcert", "-rfc", "-alias", "broker", "-file", "broker.pem", *store]
        )

    @property
    def certificate(self) -> Path:
        """The certificate of the secured listener, as PEM."""
        return self._place / "broker.pem"

    def start(self) -> None:
        """Starts it, also after `kill`, and returns when it answers."""
        self._running.enter_context(
            running([*self._java, "kafka.Kafka", "server.properties"], self._ports, self._place)
        )
        wait_until(self._answers)

    def kill(self) -> None:
        """Kills it with SIGKILL."""
        self._running.close()

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            return bool(self.admin.list_topics(timeout=5.0).brokers)
        return False

    @cached_property
    def admin(self) -> AdminClient:
        """A client that may do everything."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """Creates a topic.

        Args:
            partitions: how many.
            name: of the topic; None: one that no other has.
            config: properties of the topic with `_` instead of `.`.

        Returns:
            Its name.
        """
        from confluent_kafka.admin import NewTopic

        name = name or f"topic-{uuid4().hex}"
        settings = {option.replace("_", "."): value for option, value in config.items()}
        settings.setdefault(
            "retention.ms", "-1"
        )  # the times of records are those of tests, often of 1970
        topic = NewTopic(name, partitions, 1, config=settings)
        for done in self.admin.create_topics([topic]).values():
            done.result()
        wait_until(lambda: name in self.admin.list_topics().topics)
        return name

    def delete(self, topic: str) -> None:
        """Deletes a topic."""
        for done in self.admin.delete_topics([topic]).values():
            done.result()
        wait_until(lambda: topic not in self.admin.list_topics().topics)

    def allow(self, user: str, topic: str) -> None:
        """Allows a user to read and write a topic, and nothing else."""
        from confluent_kafka.admin import (
            AclBinding,
            AclOperation,
            AclPermissionType,
            ResourcePatternType,
            ResourceType,
        )

        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                topic,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for operation in (AclOperation.READ, AclOperation.WRITE)
        ]
        for done in self.admin.create_acls(bindings).values():
            done.result()

    def url(self, topic: str) -> str:
        """The URL of a topic."""
        return f"kafka://{self.address}/{topic}"


@contextmanager
def kafka(place: Path) -> Iterator[Kafka]:
    """A broker that runs until the end of the block."""
    broker = Kafka(place)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()
        shutil.rmtree(place / "data", ignore_errors=True)
