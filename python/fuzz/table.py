"""A table of ops that programs are drawn from. An entry draws its inputs and writes its text."""


class Table(list):
    """Entries, in the order in which a seed's numbers choose among them."""

    def op(self, function):
        """Puts an entry into the table, under its name."""
        def entry(g):
            made = function(g)
            return (function.__name__.strip("_"), made) if isinstance(made, str) else made

        self.append(entry)
        return entry
