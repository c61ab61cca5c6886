"""Reading statements, and taking jumps out of them.

What names a block assigns and reads; then, for one function: returns inside of branches take what follows into the branch, so
that a branch with a return always returns; ``break``, ``continue`` and returns inside of loops become flags. ``transform`` does the
rest. All nodes keep their lines.
"""

import ast
import copy

AG = "__tonnage_ag"


def constant(value, like):
    """A constant at another node's line."""
    return ast.copy_location(ast.Constant(value), like)


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def walk(nodes):
    """All nodes, without those of functions and classes inside."""
    for node in nodes:
        yield node
        if not isinstance(node, SCOPES):
            yield from walk(ast.iter_child_nodes(node))


def assigned(nodes):
    """The names that statements assign."""
    names = set()
    for node in walk(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    for node in walk(nodes):  # a comprehension's own names are its own
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
            names -= own - {n.id for n in walk(nodes) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                            and not any(n in list(ast.walk(g.target)) for g in node.generators)}
    return names


def loaded(nodes, without=()):
    """The names that statements read, functions inside of them included; not inside of ``without``."""
    names, skip = set(), set(map(id, without))
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) in skip:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        stack.extend(ast.iter_child_nodes(node))
    return names


def has(nodes, kinds, loops=True):
    """Whether there is such a statement; ``loops=False`` looks not into loops inside."""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, SCOPES) or (not loops and isinstance(node, (ast.While, ast.For))):
            continue
        if has(ast.iter_child_nodes(node), kinds, loops):
            return True
    return False


def parts(nodes, names):
    """The attributes and elements that statements assign, by their text: ``self.x``, ``state["a"]``. Not those of objects that
    the statements themselves put in place, ``names``."""
    found = {}
    for node in walk(nodes):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store) and _is_plain(node):
            if not names & {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}:
                found.setdefault(ast.unparse(node), node)
    return found


def _is_plain(node):
    if isinstance(node, ast.Attribute):
        return _is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return _is_plain(node.value) and isinstance(node.slice, (ast.Constant, ast.Name))
    return isinstance(node, ast.Name)


def ends(block):
    """Whether a block always returns, raises, breaks or goes on."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return True
    if isinstance(last, ast.With):
        return ends(last.body)
    return isinstance(last, ast.If) and ends(last.body) and ends(last.orelse)


class FunctionFlow:
    """One function: its own names and flags."""

    def __init__(self, statements):
        self.count = 0
        self.statements = statements  # what makes calls of the statements that are left

    def fresh(self, lead):
        self.count += 1
        return f"__tonnage_{lead}{self.count}"

    def rewrite(self, node):
        self.node = node
        self.outside = set()
        for inner in walk(node.body):
            if isinstance(inner, ast.Global):
                self.outside.update(("global", n) for n in inner.names)
            elif isinstance(inner, ast.Nonlocal):
                self.outside.update(("nonlocal", n) for n in inner.names)
        arguments = node.args
        self.parameters = {a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg)}
        node.body = self.without_returns_in_loops(node.body)
        node.body = self.returning(node.body)
        node.body = self.without_jumps(node.body)
        statements = [n for n in walk(node.body) if isinstance(n, (ast.If, ast.While, ast.For))]
        flow = set()
        for statement in statements:
            flow |= assigned([statement])
        declared = {name for _, name in self.outside}
        start = [self.assign(name, self.call("undefined", ast.Constant(name)), node)
                 for name in sorted(flow - self.parameters - declared)]
        docstring = [n for n in node.body[:1] if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)]
        declarations = [n for n in node.body if isinstance(n, (ast.Global, ast.Nonlocal))]
        rest = [n for n in node.body[len(docstring):] if n not in declarations]
        node.body = docstring + declarations + start + self.statements(self, list(rest)).block(rest)
        ast.fix_missing_locations(node)

    # Small pieces.

    def name(self, name, store=False):
        return ast.Name(name, ast.Store() if store else ast.Load())

    def call(self, helper, *arguments):
        return ast.Call(ast.Attribute(self.name(AG), helper, ast.Load()), list(arguments), [])

    def assign(self, name, value, like):
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([self.name(name, True)], value), like))

    def not_any(self, flags):
        made = [self.call("not_", self.name(flag)) for flag in flags]
        return made[0] if len(made) == 1 else ast.BoolOp(ast.And(), made)

    # Returns.

    def returning(self, block, top=True):
        """A branch that returns takes what follows into it, so that both branches return."""
        made = []
        for i, statement in enumerate(block):
            if isinstance(statement, ast.If) and has([statement], ast.Return):
                rest = block[i + 1:]
                if top and not ends(rest):
                    rest = rest + [ast.copy_location(ast.Return(constant(None, statement)), statement)]
                yes = statement.body if ends(statement.body) else statement.body + copy.deepcopy(rest)
                no = statement.orelse if ends(statement.orelse) else statement.orelse + rest
                statement.body, statement.orelse = self.returning(yes, top), self.returning(no, top)
                made.append(statement)
                return made
            if isinstance(statement, ast.With) and has([statement], ast.Return):
                statement.body = self.returning(statement.body, top and i + 1 == len(block))
            made.append(statement)
        return made

    def without_returns_in_loops(self, block):
        """A return inside of a loop ends the loop, and then returns."""
        made = []
        for statement in block:
            if isinstance(statement, (ast.While, ast.For)) and has(statement.body, ast.Return):
                flag, value = self.fresh("returned"), self.fresh("value")
                statement.body = self.returns_as_breaks(statement.body, flag, value)
                made.append(self.assign(flag, constant(False, statement), statement))
                made.append(statement)
                leave = ast.If(self.name(flag), [ast.Return(self.name(value))], [])
                made.append(ast.fix_missing_locations(ast.copy_location(leave, statement)))
                continue
            for field in ("body", "orelse", "finalbody"):
                inner = getattr(statement, field, None)
                if isinstance(inner, list) and not isinstance(statement, SCOPES):
                    setattr(statement, field, self.without_returns_in_loops(inner))
            made.append(statement)
        return made

    def returns_as_breaks(self, block, flag, value):
        made = []
        for statement in block:
            if isinstance(statement, ast.Return):
                made.append(self.assign(value, statement.value or constant(None, statement), statement))
                made.append(self.assign(flag, constant(True, statement), statement))
                made.append(ast.copy_location(ast.Break(), statement))
                return made
            if isinstance(statement, (ast.While, ast.For)) and has(statement.body, ast.Return):
                statement.body = self.returns_as_breaks(statement.body, flag, value)
                made.append(statement)
                leave = ast.If(self.name(flag), [ast.Break()], [])
                made.append(ast.fix_missing_locations(ast.copy_location(leave, statement)))
                continue
            for field in ("body", "orelse"):
                inner = getattr(statement, field, None)
                if isinstance(inner, list) and not isinstance(statement, SCOPES):
                    setattr(statement, field, self.returns_as_breaks(inner, flag, value))
            made.append(statement)
        return made

    # Jumps.

    def without_jumps(self, block):
        made = []
        for statement in block:
            if isinstance(statement, SCOPES):
                made.append(statement)
                continue
            if isinstance(statement, (ast.While, ast.For)):
                made.extend(self.loop_without_jumps(statement))
                continue
            for field in ("body", "orelse", "finalbody"):
                inner = getattr(statement, field, None)
                if isinstance(inner, list):
                    setattr(statement, field, self.without_jumps(inner))
            for handler in getattr(statement, "handlers", []):
                handler.body = self.without_jumps(handler.body)
            made.append(statement)
        return made

    def loop_without_jumps(self, loop):
        before, broken, skipped = [], None, None
        if has(loop.body, ast.Break, loops=False):
            broken = self.fresh("broken")
            before.append(self.assign(broken, constant(False, loop), loop))
        if has(loop.body, ast.Continue, loops=False):
            skipped = self.fresh("skipped")
        body = self.without_jumps(loop.body)
        if broken or skipped:
            body = self.flagged(body, broken, skipped)
        if skipped:
            body = [self.assign(skipped, constant(False, loop), loop)] + body
        # What an `else` says runs where the loop was not broken off.
        after, loop.orelse = self.without_jumps(loop.orelse), []
        if after and broken:
            guard = ast.If(self.not_any([broken]), after, [])
            after = [ast.fix_missing_locations(ast.copy_location(guard, loop))]
        loop.body = body
        loop.tonnage_broken = broken
        return before + [loop] + after

    def flagged(self, block, broken, skipped):
        """Jumps as flags; what follows runs where none is set."""
        made = []
        flags = [flag for flag in (broken, skipped) if flag]
        for i, statement in enumerate(block):
            if isinstance(statement, (ast.Break, ast.Continue)):
                flag = broken if isinstance(statement, ast.Break) else skipped
                made.append(self.assign(flag, constant(True, statement), statement))
                return made
            jumps = (not isinstance(statement, (ast.While, ast.For) + SCOPES)
                     and has([statement], (ast.Break, ast.Continue), loops=False))
            if jumps:
                for part in [statement, *getattr(statement, "handlers", [])]:
                    for field in ("body", "orelse", "finalbody"):
                        inner = getattr(part, field, None)
                        if isinstance(inner, list) and inner:
                            setattr(part, field, self.flagged(inner, broken, skipped))
                made.append(statement)
                rest = self.flagged(block[i + 1:], broken, skipped)
                if rest:
                    guard = ast.If(self.not_any(flags), rest, [])
                    made.append(ast.fix_missing_locations(ast.copy_location(guard, statement)))
                return made
            made.append(statement)
        return made
