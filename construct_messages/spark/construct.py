"""CONSTRUCT on Spark: a query over a table of quads returns messages, as a DataFrame.

The query is translated (`planning`), optimized (`query/optimizer`) and evaluated (`evaluation`); the template makes
messages of the solutions (`messages`), and `logs/writer` writes them. Invalid queries and options are
refused before a job runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from construct_messages.construct.assembly import Options
from construct_messages.logs import EncoderOptions, FormatOptions, options_for_writing
from construct_messages.logs.json.options import JsonOptions
from construct_messages.logs.targets import format_of_target
from construct_messages.query.algebra.nodes import Plan
from construct_messages.query.optimizer.optimize import Hints, explanation, optimize
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.formats import FORMATS
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.options import Dataset, Grouping
from construct_messages.spark.evaluation import EvaluatedPlan, EvaluationOptions, check, evaluated
from construct_messages.spark.logs.writer import LogFormat, Written, write_file, write_folder
from construct_messages.spark.messages import messages, relabelled
from construct_messages.spark.planning import plan_query
from construct_messages.spark.quads.loading import refuse_files_read
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.session import translated
from construct_messages.spark.tables.rows import DOCUMENTS, json_documents, structs, structs_schema
from construct_messages.spark.tables.selection import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@checked
def construct_messages(
    query: str,
    quads: DataFrame | QuadTable,
    *,
    group_by: Grouping | str | Sequence[str] = (),
    distinct: bool = False,
    skip_empty: bool = False,
    skolemize: str | None = None,
    label_prefix: str | None = None,
    max_messages: int | None = None,
    bindings: Mapping[str, Any] | None = None,
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    dataset: Dataset = Dataset(),
    max_path_rounds: int = 1000,
    allow_full_closure: bool = False,
    hints: Hints | None = None,
) -> Messages:
    """Runs a CONSTRUCT query over a table of quads and returns one RDF Message for each solution.

    The query is checked immediately. No job runs before an action on the result.

    Args:
        query: the text of a CONSTRUCT query: SPARQL 1.1, with the templates of 1.2 and with `GRAPH` in them.
        quads: a table of `read_quads` or `load_quads`, or a DataFrame of terms in N-Triples syntax with the columns
            `subject`, `predicate`, `object` and `graph`. For others, see `QuadTable.of`.
        group_by: variables; solutions with equal terms for them form one message. A `Grouping` has further options: its
            order `"appearance"` is that of the groups' first solutions, if the query has an order.
        distinct: leave out messages that equal an earlier one, up to blank nodes of the template.
        skip_empty: leave out messages without quads.
        skolemize: replace blank nodes of the data by IRIs under this IRI; blank nodes of the template stay.
        label_prefix: the beginning of blank node labels; None: random, so that two results share no node.
        max_messages: the maximal number of messages.
        bindings: initial bindings, joined as a VALUES block in WHERE: variable to term.
        prefixes: prefixes that the query uses but does not declare.
        base: resolve relative IRIs of the query against this IRI.
        dataset: the default and named graphs of the query; `"union"` is refused.
        max_path_rounds: the maximal number of steps of a path of any length.
        allow_full_closure: allow paths of any length between two unbound ends.
        hints: see `Hints`.

    Raises:
        QueryError: the query is not a valid CONSTRUCT query.
        UnsupportedQuery: a part of it is not supported on Spark.
        UsageError: an invalid option.
        QuadsError: the table does not have the columns.

    >>> quads = spark.createDataFrame([("<urn:a>", "<urn:p>", "<urn:b>")], ["subject", "predicate", "object"])
    >>> messages = construct_messages("CONSTRUCT { ?o <urn:q> ?s } WHERE { ?s <urn:p> ?o }", quads)
    >>> messages.frame.collect()
    [Row(message='<urn:b> <urn:q> <urn:a> .')]
    """
    grouping = Grouping.of(group_by)
    options = Options(
        distinct=distinct,
        skip_empty=skip_empty,
        skolemize=skolemize,
        label_prefix=label_prefix,
        max_messages=max_messages,
        grouping=grouping,
    )
    if not isinstance(quads, QuadTable):
        quads = QuadTable.of(quads)
    parsed, plan = plan_query(
        query,
        group_by=grouping,
        bindings=bindings,
        dataset=dataset,
        prefixes=prefixes,
        base=base,
    )
    parsed.warn_of_unbound(name.lstrip("?$") for name in bindings or ())
    plan = optimize(plan, quads.statistics, hints=hints)
    check(plan, allow_full_closure=allow_full_closure)
    return Messages(
        parsed,
        plan,
        quads,
        options,
        EvaluationOptions(max_path_rounds, allow_full_closure, Labels(label_prefix)),
    )


@dataclass(frozen=True)
class Messages:
    """The messages of a query over a table, as DataFrames. They are evaluated by actions on them.

    Attributes:
        query: the parsed query.
        plan: its plan.
        table: the table.

    >>> quads = spark.createDataFrame([("<urn:a>", "<urn:p>", "<urn:b>")], ["subject", "predicate", "object"])
    >>> messages = construct_messages("CONSTRUCT { ?o <urn:q> ?s } WHERE { ?s <urn:p> ?o }", quads)
    >>> [row["o"] for row in messages.solutions().collect()]
    ['<urn:b>']
    """

    query: ConstructQuery
    plan: Plan
    table: QuadTable
    message_options: Options
    evaluation_options: EvaluationOptions

    @cached_property
    def frame(self) -> DataFrame:
        """A DataFrame of the messages: one column, `message`, of canonical N-Quads lines; an empty string is an empty
        message.

        The query's ORDER BY is the order of the frame.
        """
        labels = self.evaluation_options.labels
        template = self.query.template.labelled(labels)
        columns = relabelled(self.plan.variables, labels)
        return messages(
            self._solutions,
            template,
            self.message_options,
            ordered=self.plan.ordered,
            columns=columns,
        )

    def solutions(self) -> DataFrame:
        """Returns a DataFrame of the solutions: a column for each variable of the template, NULL if it is unbound.

        Raises:
            UsageError: variables that differ only in case, unless `spark.sql.caseSensitive` is true.
        """
        return named(self._solutions, self.plan.variables)

    def quads(self, *, raw: bool = False) -> DataFrame:
        """Returns a DataFrame of the messages with a row for each: one column, `quads`, an array of structs.

        The fields are `subject`, `predicate`, `object`, `datatype`, `language` and `graph`, as in the layout `nested`
        of `ColumnOptions`. NULL as the graph is the default graph; a message without quads is an empty array.

        Args:
            raw: whether terms are N-Triples strings, in the fields `subject`, `predicate`, `object` and `graph`.
        """
        with translated():
            return self.frame.mapInArrow(structs(raw), structs_schema(raw))

    def documents(
        self,
        frame: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        contexts: Mapping[str, Any] | None = None,
        native: bool = True,
    ) -> DataFrame:
        """Returns a DataFrame of the messages as JSON documents: one column, `document`, of JSON text.

        `pyspark.sql.functions.from_json` makes structs of them, and `spark.read.json` finds the schema.

        Args:
            frame, context, contexts, native: see `JsonOptions`. Without a frame, a property that may have several
                values in a message always has an array.

        Raises:
            UsageError: a frame or context that has no meaning.
            UnsupportedByFormat: from an action: a triple term, or an IRI that the context cannot write.
        """
        options = JsonOptions(frame, context, contexts or {}, native)
        write = json_documents(
            EncoderOptions(
                own=options,
                prefixes=self.query.prefixes,
                template=self.query.template,
                group_by=frozenset(by) if (by := self.message_options.grouping.by) else None,
            )
        )
        with translated():
            return self.frame.mapInArrow(write, DOCUMENTS)

    def explain(self) -> str:
        """Returns the plan as text, join orders and estimates, and its SQL. `frame.explain()` prints Spark's plan."""
        return f"{explanation(self.plan, self.table.statistics)}\n\n{self._evaluation.sql}"

    @property
    def reads(self) -> int:
        """How often an action on the frame reads the table: keep one that is slow to read, if it is more than once."""
        return self._evaluation.reads

    def write(
        self,
        path: str | os.PathLike[str],
        format: str = "nq",
        syntax: str | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: FormatOptions | None = None,
        mode: str = "error",
        compression: str | None = None,
    ) -> Written:
        """Writes a folder of logs, one for each partition. In the order of their names they form one log.

        Args:
            path: the folder, on any filesystem that Spark can write to.
            format: a name, extension or media type, see `QueryMessages.serialize`; N-Quads and N-Triples are the
                fastest.
            syntax: `"rdfm"` (default), `"1.2-messages"`, `"1.2-basic-messages"` or `"1.1-messages"`.
            prefixes: for formats that have prefixes; None: those of the query.
            options: options of the format, such as `JellyOptions`.
            mode: if the folder exists: `"error"`, `"overwrite"` (only the logs that earlier runs have recorded: a
                folder with other files is refused) or `"append"`.
            compression: `"gzip"`, `"bzip2"`, `"zstd"` or another codec that Spark knows.

        Returns:
            The numbers of messages and quads.

        Raises:
            UsageError: an unknown format, syntax or mode, an existing folder, one with files of others to overwrite, or
                one whose files the query reads.
            UnsupportedByFormat: the format cannot represent a quad.
        """
        log = self._log_format(path, format, syntax, prefixes, options)
        return write_folder(self.frame, path, log, mode=mode, compression=compression)

    def write_file(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        syntax: str | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: FormatOptions | None = None,
    ) -> Written:
        """Writes one log, in the order of the messages. It appears when it is complete.

        Args:
            path: a file on a filesystem that the driver and all executors share; compressed if it ends in `.gz`,
                `.bz2`, `.xz` or `.zst`.
            format: see `write`; None: that of the extension of the path, else N-Quads.
            syntax, prefixes, options: see `write`.

        Raises:
            UsageError, UnsupportedByFormat: see `write`.
            IncompleteResult: the executors write to another filesystem.
        """
        format = format_of_target(path, format)
        return write_file(
            self.frame, path, self._log_format(path, format, syntax, prefixes, options)
        )

    def _log_format(
        self,
        path: str | os.PathLike[str],
        format: str,
        syntax: str | None,
        prefixes: Mapping[str, str] | None,
        options: FormatOptions | None,
    ) -> LogFormat:
        found, delimiting = find_log(format, syntax, FORMATS)
        refuse_files_read(path, self.table.frame)
        template = self.query.template
        if prefixes is None:
            prefixes = self.query.prefixes if found.log_prefixes else {}
        # computed once, so that all tasks use the same options: the logs of a folder, concatenated, are one log
        options = options_for_writing(
            found, options, graphs=template.names_graphs, triple_terms=template.has_triple_terms
        )
        return LogFormat(found, delimiting, template.names_graphs, prefixes, options)

    @property
    def _solutions(self) -> DataFrame:
        return self._evaluation.frame

    @cached_property
    def _evaluation(self) -> EvaluatedPlan:
        with (
            translated()
        ):  # the evaluation of a path runs jobs, to find out when no new nodes appear
            return evaluated(self.plan, self.table, self.evaluation_options)
