"""All rules that look at one file, by name."""

from collections.abc import Callable, Iterator

from tidy import deciding, docs, imports, names, private, size, types
from tidy.source import Source, Violation

Rule = Callable[[Source], Iterator[Violation]]

RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        size.module_length,
        size.line_length,
        size.function_length,
        size.positional_parameters,
        docs.docstrings,
        docs.theory_of_operation,
        docs.bare_init,
        imports.absolute,
        imports.below_the_root,
        imports.confined,
        private.untouched,
        names.old_names,
        types.any_has_a_reason,
        deciding.no_world,
        deciding.no_waiting,
        deciding.no_set_order,
    )
}
