"""Rewrites the source of a function: control flow becomes calls of ``runtime``.

In the order of the work: returns inside of branches take what follows into the branch, so that a branch with a return
always returns; ``break``, ``continue`` and returns inside of loops become flags; then each statement becomes functions over
the variables that it assigns, and a call. All nodes keep their lines.
"""

import ast
import copy
import inspect
import textwrap
import types

from . import runtime

_AG = "__tonnage_ag"


def rewritten(function):
    """A function of the same cells and globals whose control flow is calls."""
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return function
    lines, first = inspect.getsourcelines(function)
    text = textwrap.dedent("".join(lines))
    if function.__name__ == "<lambda>":
        node = _lambda(text, code)
    else:
        found = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == function.__name__]
        node = found[0] if found else None
    if node is None:
        return function
    ast.increment_lineno(node, first - 1)
    if not _needed(node):
        return function
    node.decorator_list, node.returns = [], None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    defaults = node.args
    defaults.defaults = [_constant(None, d) for d in defaults.defaults]
    defaults.kw_defaults = [d and _constant(None, d) for d in defaults.kw_defaults]
    _Function().rewrite(node)
    # A function around it gives the cells their names. It knows the function by another name than its own, which is a global or a
    # cell: a function may speak of itself.
    node.name = "__tonnage_body"
    outer = ast.FunctionDef(
        name="__tonnage_outer",
        args=ast.arguments([], [ast.arg(n) for n in [_AG, *code.co_freevars]], None, [], [], None, []),
        body=[node, ast.Return(ast.Name(node.name, ast.Load()))], decorator_list=[], returns=None, type_params=[],
    )
    module = ast.Module([ast.copy_location(outer, node)], [])
    ast.fix_missing_locations(module)
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    around = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
    inner = next(c for c in around.co_consts if isinstance(c, types.CodeType) and c.co_name == node.name)
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[_AG] = types.CellType(runtime)
    inner = inner.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    made = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__,
                              tuple(cells[name] for name in inner.co_freevars))
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return made


def _lambda(text, code):
    """The only lambda of those lines that takes such arguments, as a function; none where it cannot be told."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None  # the lines are a part of an expression
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)
             and [a.arg for a in n.args.posonlyargs + n.args.args + n.args.kwonlyargs] == list(names)]
    if len(found) != 1:
        return None
    made = ast.FunctionDef(name="__tonnage_lambda", args=found[0].args, body=[ast.Return(found[0].body)], decorator_list=[],
                           returns=None, type_params=[])
    return ast.fix_missing_locations(ast.copy_location(made, found[0]))


_INTERESTING = (ast.If, ast.While, ast.For, ast.IfExp, ast.BoolOp, ast.Assert, ast.Call)


def _needed(node):
    return any(isinstance(n, _INTERESTING) or isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)
               for n in ast.walk(node))


def _constant(value, like):
    return ast.copy_location(ast.Constant(value), like)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _walk(nodes):
    """All nodes, without those of functions and classes inside."""
    for node in nodes:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _walk(ast.iter_child_nodes(node))


def _assigned(nodes):
    """The names that statements assign."""
    names = set()
    for node in _walk(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    for node in _walk(nodes):  # a comprehension's own names are its own
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
            names -= own - {n.id for n in _walk(nodes) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                            and not any(n in list(ast.walk(g.target)) for g in node.generators)}
    return names


def _loaded(nodes, without=()):
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


def _has(nodes, kinds, loops=True):
    """Whether there is such a statement; ``loops=False`` looks not into loops inside."""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, _SCOPES) or (not loops and isinstance(node, (ast.While, ast.For))):
            continue
        if _has(ast.iter_child_nodes(node), kinds, loops):
            return True
    return False


def _ends(block):
    """Whether a block always returns, raises, breaks or goes on."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return True
    if isinstance(last, ast.With):
        return _ends(last.body)
    return isinstance(last, ast.If) and _ends(last.body) and _ends(last.orelse)


class _Function:
    """One function: its own names and flags."""

    def __init__(self):
        self.count = 0

    def fresh(self, lead):
        self.count += 1
        return f"__tonnage_{lead}{self.count}"

    def rewrite(self, node):
        self.node = node
        self.outside = set()
        for inner in _walk(node.body):
            if isinstance(inner, ast.Global):
                self.outside.update(("global", n) for n in inner.names)
            elif isinstance(inner, ast.Nonlocal):
                self.outside.update(("nonlocal", n) for n in inner.names)
        arguments = node.args
        self.parameters = {a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg)}
        node.body = self.without_returns_in_loops(node.body)
        node.body = self.returning(node.body)
        node.body = self.without_jumps(node.body)
        statements = [n for n in _walk(node.body) if isinstance(n, (ast.If, ast.While, ast.For))]
        flow = set()
        for statement in statements:
            flow |= _assigned([statement])
        declared = {name for _, name in self.outside}
        start = [self.assign(name, self.call("undefined", ast.Constant(name)), node)
                 for name in sorted(flow - self.parameters - declared)]
        docstring = [n for n in node.body[:1] if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)]
        declarations = [n for n in node.body if isinstance(n, (ast.Global, ast.Nonlocal))]
        rest = [n for n in node.body[len(docstring):] if n not in declarations]
        whole = list(rest)
        node.body = docstring + declarations + start + _Statements(self, whole).block(rest)
        ast.fix_missing_locations(node)

    # Small pieces.

    def name(self, name, store=False):
        return ast.Name(name, ast.Store() if store else ast.Load())

    def call(self, helper, *arguments):
        return ast.Call(ast.Attribute(self.name(_AG), helper, ast.Load()), list(arguments), [])

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
            if isinstance(statement, ast.If) and _has([statement], ast.Return):
                rest = block[i + 1:]
                if top and not _ends(rest):
                    rest = rest + [ast.copy_location(ast.Return(_constant(None, statement)), statement)]
                yes = statement.body if _ends(statement.body) else statement.body + copy.deepcopy(rest)
                no = statement.orelse if _ends(statement.orelse) else statement.orelse + rest
                statement.body, statement.orelse = self.returning(yes, top), self.returning(no, top)
                made.append(statement)
                return made
            if isinstance(statement, ast.With) and _has([statement], ast.Return):
                statement.body = self.returning(statement.body, top and i + 1 == len(block))
            made.append(statement)
        return made

    def without_returns_in_loops(self, block):
        """A return inside of a loop ends the loop, and then returns."""
        made = []
        for statement in block:
            if isinstance(statement, (ast.While, ast.For)) and _has(statement.body, ast.Return):
                flag, value = self.fresh("returned"), self.fresh("value")
                statement.body = self.returns_as_breaks(statement.body, flag, value)
                made.append(self.assign(flag, _constant(False, statement), statement))
                made.append(statement)
                leave = ast.If(self.name(flag), [ast.Return(self.name(value))], [])
                made.append(ast.fix_missing_locations(ast.copy_location(leave, statement)))
                continue
            for field in ("body", "orelse", "finalbody"):
                inner = getattr(statement, field, None)
                if isinstance(inner, list) and not isinstance(statement, _SCOPES):
                    setattr(statement, field, self.without_returns_in_loops(inner))
            made.append(statement)
        return made

    def returns_as_breaks(self, block, flag, value):
        made = []
        for statement in block:
            if isinstance(statement, ast.Return):
                made.append(self.assign(value, statement.value or _constant(None, statement), statement))
                made.append(self.assign(flag, _constant(True, statement), statement))
                made.append(ast.copy_location(ast.Break(), statement))
                return made
            if isinstance(statement, (ast.While, ast.For)) and _has(statement.body, ast.Return):
                statement.body = self.returns_as_breaks(statement.body, flag, value)
                made.append(statement)
                leave = ast.If(self.name(flag), [ast.Break()], [])
                made.append(ast.fix_missing_locations(ast.copy_location(leave, statement)))
                continue
            for field in ("body", "orelse"):
                inner = getattr(statement, field, None)
                if isinstance(inner, list) and not isinstance(statement, _SCOPES):
                    setattr(statement, field, self.returns_as_breaks(inner, flag, value))
            made.append(statement)
        return made

    # Jumps.

    def without_jumps(self, block):
        made = []
        for statement in block:
            if isinstance(statement, _SCOPES):
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
        if _has(loop.body, ast.Break, loops=False):
            broken = self.fresh("broken")
            before.append(self.assign(broken, _constant(False, loop), loop))
        if _has(loop.body, ast.Continue, loops=False):
            skipped = self.fresh("skipped")
        body = self.without_jumps(loop.body)
        if broken or skipped:
            body = self.flagged(body, broken, skipped)
        if skipped:
            body = [self.assign(skipped, _constant(False, loop), loop)] + body
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
                made.append(self.assign(flag, _constant(True, statement), statement))
                return made
            jumps = (not isinstance(statement, (ast.While, ast.For) + _SCOPES)
                     and _has([statement], (ast.Break, ast.Continue), loops=False))
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


class _Statements(ast.NodeTransformer):
    """Statements as functions over what they assign, and calls."""

    def __init__(self, function, whole):
        self.f, self.whole = function, whole

    def block(self, block):
        made = []
        for statement in block:
            new = self.visit(statement)
            made.extend(new if isinstance(new, list) else [new])
        return made

    def over(self, name, block, names, like, arguments=()):
        """A function of these statements that assigns the names around it."""
        body = []
        declared = {n: how for how, n in self.f.outside}
        for how in ("global", "nonlocal"):
            own = [n for n in names if declared.get(n, "nonlocal") == how]
            if own:
                body.append((ast.Global if how == "global" else ast.Nonlocal)(own))
        body += block or [ast.Pass()]
        made = ast.FunctionDef(name=name, args=ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, []),
                               body=body, decorator_list=[], returns=None, type_params=[])
        return ast.fix_missing_locations(ast.copy_location(made, like))

    def state(self, names, like):
        """Functions that read and set the names."""
        get, put = self.f.fresh("get"), self.f.fresh("set")
        values = ast.Return(ast.Tuple([self.f.name(n) for n in names], ast.Load()))
        unpack = ast.Assign([ast.Tuple([self.f.name(n, True) for n in names], ast.Store())], self.f.name("values"))
        return [self.over(get, [values], [], like),
                self.over(put, [unpack] if names else [], names, like, ["values"])], get, put

    def statement(self, call, like):
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), like))

    def texts(self, names):
        return ast.Tuple([ast.Constant(n) for n in names], ast.Load())

    def visit_If(self, node):
        f = self.f
        if _has([node], ast.Return) and not (_ends(node.body) and _ends(node.orelse)):
            # A return out of `try` or `with`: stays Python's, and so does what it is decided on.
            node.test, node.body, node.orelse = self.visit(node.test), self.block(node.body), self.block(node.orelse)
            return node
        names = sorted(_assigned(node.body + node.orelse))
        used = _loaded(self.whole, [node]) | f.parameters
        exported = [n for n in names if n in used or n.startswith("__tonnage_")]
        test = self.visit(node.test)
        yes, no = f.fresh("then"), f.fresh("else")
        if _ends(node.body) and _ends(node.orelse) and _has([node], ast.Return):
            body, orelse = self.block(node.body), self.block(node.orelse)
            state, get, put = self.state(names, node)
            call = f.call("if_return", test, f.name(yes), f.name(no), f.name(get), f.name(put))
            made = ast.fix_missing_locations(ast.copy_location(ast.Return(call), node))
            return [self.over(yes, body, names, node), self.over(no, orelse, names, node), *state, made]
        body, orelse = self.block(node.body), self.block(node.orelse)
        state, get, put = self.state(names, node)
        call = f.call("if_stmt", test, f.name(yes), f.name(no), f.name(get), f.name(put), self.texts(names),
                      self.texts(exported))
        return [self.over(yes, body, names, node), self.over(no, orelse, names, node), *state,
                self.statement(call, node)]

    def visit_While(self, node):
        f, names = self.f, sorted(_assigned(node.body))
        test, body = f.fresh("test"), f.fresh("body")
        condition = self.visit(node.test)
        if getattr(node, "tonnage_broken", None):
            going = f.call("not_", f.name(node.tonnage_broken))
            condition = f.call("and_", self.later(going), self.later(condition))
        state, get, put = self.state(names, node)
        call = f.call("while_stmt", f.name(test), f.name(body), f.name(get), f.name(put), self.texts(names))
        return [self.over(test, [ast.Return(condition)], [], node), self.over(body, self.block(node.body), names, node),
                *state, self.statement(call, node)]

    def visit_For(self, node):
        f, names = self.f, sorted(_assigned(node.body) | _assigned([node.target]))
        body, item = f.fresh("body"), f.fresh("item")
        take = ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], f.name(item)), node))
        going = ast.Constant(None)
        if getattr(node, "tonnage_broken", None):
            going = self.later(f.call("not_", f.name(node.tonnage_broken)))
        state, get, put = self.state(names, node)
        call = f.call("for_stmt", self.visit(node.iter), going, f.name(body), f.name(get), f.name(put), self.texts(names))
        return [self.over(body, [take] + self.block(node.body), names, node, [item]), *state, self.statement(call, node)]

    def later(self, expression):
        return ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression)

    def at(self, made, like):
        return ast.fix_missing_locations(ast.copy_location(made, like))

    def visit_BoolOp(self, node):
        values = [self.visit(v) for v in node.values]
        if any(isinstance(n, ast.NamedExpr) for v in values for n in ast.walk(v)):
            node.values = values
            return node
        helper = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.at(self.f.call(helper, *[self.later(v) for v in values]), node)

    def visit_UnaryOp(self, node):
        node.operand = self.visit(node.operand)
        return self.at(self.f.call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) == 1 or any(isinstance(n, (ast.Call, ast.NamedExpr)) for c in node.comparators[:-1]
                                     for n in ast.walk(c)):
            return node
        sides = [node.left, *node.comparators]
        pairs = [ast.Compare(copy.deepcopy(a), [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:])]
        return self.at(self.f.call("and_", *[self.later(p) for p in pairs]), node)

    def visit_IfExp(self, node):
        test, yes, no = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        return self.at(self.f.call("if_exp", test, self.later(yes), self.later(no)), node)

    def visit_Assert(self, node):
        test = self.visit(node.test)
        message = self.visit(node.msg) if node.msg else ast.Constant(None)
        return self.statement(self.f.call("assert_", test, self.later(message)), node)

    def visit_Return(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name):
            node.value = self.at(self.f.call("returned", node.value), node)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            arguments = self.f.node.args
            first = (arguments.posonlyargs + arguments.args)[:1]
            node.args = [self.at(self.f.name(n), node) for n in ["__class__", *[a.arg for a in first]]]
        own = isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals", "vars", "eval", "exec")
        if not own:
            node.func = self.at(self.f.call("call", node.func), node.func)
        return node

    def visit_FunctionDef(self, node):
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        inner = _Function()
        inner.count = self.f.count + 1000
        if not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in _walk(node.body)):
            inner.rewrite(node)
        return node

    def visit_AsyncFunctionDef(self, node):
        return node

    def visit_ClassDef(self, node):
        return node

    def visit_Lambda(self, node):
        node.body = self.visit(node.body)
        return node
