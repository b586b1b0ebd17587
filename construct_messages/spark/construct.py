"""CONSTRUCT on Spark: a query and a table of quads give messages, as a DataFrame.

The query is translated (`planning`), optimized (`query/optimizer`) and evaluated (`frames/evaluation`); the template
makes messages of the solutions (`frames/messages`), and `logs/writer` writes them. What can be refused is refused
before a job runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from construct_messages.errors import UsageError
from construct_messages.formats import Format, find_log
from construct_messages.labels import Labels
from construct_messages.logs import FormatOptions, options_for_writing
from construct_messages.query.algebra.nodes import Var
from construct_messages.query.algebra.plan import Plan
from construct_messages.query.optimizer.explanation import explanation
from construct_messages.query.optimizer.optimize import Hints, optimize
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.spark.frames.checks import check
from construct_messages.spark.frames.evaluation import EvaluationOptions, evaluate
from construct_messages.spark.frames.messages import MessageOptions, messages, relabel_blanks
from construct_messages.spark.logs.writer import Written, write_file, write_folder
from construct_messages.spark.planning import keys, plan_query
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.session import translated
from construct_messages.spark.sql.columns import column
from construct_messages.terms import iri
from construct_messages.writing import format_of_target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUT_OF_RANGE: Final = ("fail", "unbound")
"""What may be done about values that Spark cannot hold."""


def construct_messages(
    query: str,
    quads: DataFrame | QuadTable,
    *,
    columns: Mapping[str, str] | None = None,
    assume_distinct: bool = False,
    group_by: Sequence[str] = (),
    group_order: str = "appearance",
    distinct: bool = False,
    skip_empty: bool = False,
    skolemize: str | None = None,
    label_prefix: str | None = None,
    bindings: Mapping[str, Any] | None = None,
    default_graph: str | Sequence[str] = (),
    named_graphs: Sequence[str] = (),
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    max_messages: int | None = None,
    max_path_rounds: int = 1000,
    allow_full_closure: bool = False,
    out_of_range: str = "fail",
    hints: Hints | None = None,
) -> Messages:
    """One RDF Message for each solution of a CONSTRUCT query over a table of quads.

    No job runs before an action on the result. An illegal query, or one with a part that is not supported, raises at
    once.

    Args:
        query: the text of a CONSTRUCT query: SPARQL 1.1, with the templates of 1.2 and `GRAPH` in them.
        quads: what `read_quads` or `load_quads` gives, or any DataFrame of terms as N-Triples writes them.
        columns: where a DataFrame's columns have other names: those of `subject`, `predicate`, `object`, `graph`.
        assume_distinct: the caller's word that no quad stands in the DataFrame twice.
        group_by: variables; solutions that are equal on them (as terms) form one message.
        group_order: `"appearance"`: groups come in the order of their first solutions, where the query has an order;
            `"sorted"`: in the order of the key.
        distinct: leave out a message that an earlier one equals up to the template's blank nodes.
        skip_empty: leave out messages without quads.
        skolemize: the IRI that blank nodes of the data become IRIs under; those of the template stay.
        label_prefix: what the labels of blank nodes begin with; None: a random one, so that what two calls give shares
            no node.
        bindings: initial bindings, joined as a VALUES block at the head of WHERE: variable to term.
        default_graph: IRIs of graphs to merge.
        named_graphs: IRIs.
        prefixes: used where the query uses but does not declare them.
        base: the IRI that relative IRIs of the query resolve against.
        max_messages: how many there are at most.
        max_path_rounds: how many steps a path of any length may take.
        allow_full_closure: whether a path of any length may have two unbound ends.
        out_of_range: what a number or date does that Spark cannot hold: `"fail"`: it ends the job with
            `ValueOutOfRange`; `"unbound"`: it is an error of the query, as a division by zero is.
        hints: see `Hints`.

    Raises:
        QueryError: the query is not a legal CONSTRUCT query.
        UnsupportedQuery: a part of it that is not supported on Spark.
        UsageError: an option that makes no sense.
        QuadsError: a table without the columns.
    """
    if max_messages is not None and max_messages < 0:
        raise UsageError(f"max_messages={max_messages} is negative")
    if skolemize is not None:
        iri(skolemize)
    if out_of_range not in OUT_OF_RANGE:
        raise UsageError(f"out_of_range={out_of_range!r} is unknown", hint=f"choose one of {', '.join(OUT_OF_RANGE)}")
    if not isinstance(quads, QuadTable):
        quads = QuadTable.of(quads, columns, assume_distinct)
    elif columns or assume_distinct:
        raise UsageError("columns and assume_distinct are about a DataFrame, and this is a table of quads already")
    parsed, plan = plan_query(
        query,
        group_by=group_by,
        group_order=group_order,
        bindings=bindings,
        default_graph=default_graph,
        named_graphs=named_graphs,
        prefixes=prefixes,
        base=base,
    )
    plan = optimize(plan, quads.statistics, hints=hints)
    check(plan, allow_full_closure=allow_full_closure)
    return Messages(
        parsed,
        plan,
        quads,
        MessageOptions(keys(group_by), distinct, skip_empty, skolemize, max_messages),
        EvaluationOptions(max_path_rounds, allow_full_closure, Labels(label_prefix), out_of_range == "unbound"),
    )


@dataclass(frozen=True)
class Messages:
    """The messages of a query over a table, as DataFrames: evaluated when an action on them is.

    Attributes:
        query: the parsed query.
        plan: how it is evaluated.
        table: what it is asked of.
    """

    query: ConstructQuery
    plan: Plan
    table: QuadTable
    message_options: MessageOptions
    evaluation_options: EvaluationOptions

    @cached_property
    def frame(self) -> DataFrame:
        """The messages: one column, `message`, of canonical N-Quads lines; the empty string is the empty message.

        A query's ORDER BY is the order of the frame.
        """
        labels = self.evaluation_options.labels
        solutions, template = relabel_blanks(self._solutions, labels), self.query.template.labelled(labels)
        return messages(solutions, template, self.message_options, ordered=self.plan.ordered)

    def solutions(self) -> DataFrame:
        """The solutions behind the messages: a column for each variable of the template, NULL where it is unbound."""
        return self._solutions.toDF(*self.plan.variables)

    def explain(self) -> str:
        """The plan as text: join orders and estimates. `frame.explain()` prints Spark's own plan."""
        return explanation(self.plan, self.table.statistics)

    def write(
        self,
        path: str | os.PathLike[str],
        format: str = "nq",
        messages: str | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: FormatOptions | None = None,
        mode: str = "error",
        compression: str | None = None,
    ) -> Written:
        """Writes a folder of logs, one for each partition; all of them, in the order of their names, are one log.

        Args:
            path: the folder, on any filesystem that Spark writes to.
            format: a name, extension or media type, see `QueryMessages.serialize`; N-Quads and N-Triples are quickest.
            messages: `"rdfm"` (the default), `"1.2-messages"`, `"1.2-basic-messages"` or `"1.1-messages"`.
            prefixes: for the formats that have them; None: the query's.
            options: those that only the format has, such as `JellyOptions`.
            mode: where the folder is there: `"error"`, `"overwrite"` or `"append"`.
            compression: `"gzip"`, `"bzip2"`, `"zstd"` or another codec that Spark knows.

        Returns:
            How many messages and quads were written.

        Raises:
            UsageError: an unknown format, syntax or mode; a folder that is there.
            UnsupportedByFormat: a quad that the format has no syntax for.
        """
        found, syntax = find_log(format, messages)
        return write_folder(
            self.frame,
            path,
            found,
            syntax,
            graphs=self.query.template.names_graphs,
            prefixes=self._prefixes(found) if prefixes is None else prefixes,
            options=self._format_options(found, options),
            mode=mode,
            compression=compression,
        )

    def write_file(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        messages: str | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: FormatOptions | None = None,
    ) -> Written:
        """Writes one log, in the order of the messages; it has its name when it is whole.

        Args:
            path: a file on a filesystem that the driver and all executors share; `.gz`, `.bz2`, `.xz` and `.zst` are
                packed.
            format: see `write`; None: what the path's extension says, else N-Quads.
            messages, prefixes, options: see `write`.

        Raises:
            UsageError, UnsupportedByFormat: see `write`.
            IncompleteResult: the executors write to a filesystem of their own.
        """
        found, syntax = find_log(format_of_target(path, format), messages)
        return write_file(
            self.frame,
            path,
            found,
            syntax,
            graphs=self.query.template.names_graphs,
            prefixes=self._prefixes(found) if prefixes is None else prefixes,
            options=self._format_options(found, options),
        )

    def _prefixes(self, format: Format) -> Mapping[str, str]:
        return self.query.prefixes if format.log_prefixes else {}

    def _format_options(self, format: Format, options: FormatOptions | None) -> FormatOptions | None:
        template = self.query.template
        # known here alone, and the same in every task: the logs of a folder are one when they are joined
        return options_for_writing(
            format, options, graphs=template.names_graphs, triple_terms=template.has_triple_terms
        )

    @cached_property
    def _solutions(self) -> DataFrame:
        with translated():  # a path runs jobs of its own, to find out when it is complete
            frame = evaluate(self.plan, self.table, self.evaluation_options)
        return frame.select(*(column(Var(name)) for name in self.plan.variables))
