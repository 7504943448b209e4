"""Published tables and figures at full size: their requirements, and a command to reproduce each."""

from vidkin.errors import InvalidArgumentError
from vidkin_research.tables.comparators import COMPARATOR_TABLES
from vidkin_research.tables.contract import DataNeed, PaperTable, TableNeeds, TableOptions, table_needs
from vidkin_research.tables.images import IMAGE_TABLES
from vidkin_research.tables.retrieval import RETRIEVAL_TABLES

__all__ = ["PAPER_TABLES", "DataNeed", "PaperTable", "TableNeeds", "TableOptions", "paper_table", "table_needs"]

PAPER_TABLES: tuple[PaperTable, ...] = (*RETRIEVAL_TABLES, *IMAGE_TABLES, *COMPARATOR_TABLES)
"""All tables, by source."""


def paper_table(name: str) -> PaperTable:
    """Find a table by name.

    Raises:
        InvalidArgumentError: The name is unknown; the message lists the known names.
    """
    for table in PAPER_TABLES:
        if table.name == name:
            return table
    raise InvalidArgumentError(
        f"a table must be one of {', '.join(table.name for table in PAPER_TABLES)}, got {name!r}"
    )
