"""Rewrites the source of a function: control flow becomes calls of ``runtime``.

``flow`` takes the jumps out; then each statement becomes functions over the variables that it assigns, and over attributes
and elements of others (``self.x``, ``state["a"]``), and a call. All nodes keep their lines.
"""

import ast
import copy
import inspect
import types

from . import runtime
from .flow import AG, FunctionFlow, assigned, constant, ends, has, loaded, parts, walk
from .source import node_of


def rewritten(function):
    """A function of the same cells and globals whose control flow is calls."""
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return function
    node = node_of(function)
    if not _needed(node):
        return function
    node.decorator_list, node.returns = [], None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    defaults = node.args
    defaults.defaults = [constant(None, d) for d in defaults.defaults]
    defaults.kw_defaults = [d and constant(None, d) for d in defaults.kw_defaults]
    _mangle(node, function.__qualname__)
    # By a name of its own: its own name means what it means to the user, who may call it from inside.
    node.name = "__tonnage_function"
    FunctionFlow(Statements).rewrite(node)
    # A function around it gives the cells their names.
    outer = ast.FunctionDef(
        name="__tonnage_outer",
        args=ast.arguments([], [ast.arg(n) for n in [AG, *code.co_freevars]], None, [], [], None, []),
        body=[node, ast.Return(ast.Name(node.name, ast.Load()))], decorator_list=[], returns=None, type_params=[],
    )
    module = ast.Module([ast.copy_location(outer, node)], [])
    ast.fix_missing_locations(module)
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    around = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
    inner = next(c for c in around.co_consts if isinstance(c, types.CodeType) and c.co_name == node.name)
    inner = inner.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[AG] = types.CellType(runtime)
    made = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__,
                              tuple(cells[name] for name in inner.co_freevars))
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return made


def _mangle(node, qualname):
    """Private names of a class, as Python writes them inside of one."""
    *_, owner, _ = ["<locals>", *qualname.split(".")]
    if owner == "<locals>":
        return
    lead = "_" + owner.lstrip("_")
    for inner in ast.walk(node):
        field = {ast.Attribute: "attr", ast.Name: "id", ast.arg: "arg"}.get(type(inner))
        name = getattr(inner, field) if field else ""
        if name.startswith("__") and not name.endswith("__"):
            setattr(inner, field, lead + name)


_INTERESTING = (ast.If, ast.While, ast.For, ast.IfExp, ast.BoolOp, ast.Assert, ast.Call)


def _needed(node):
    return any(isinstance(n, _INTERESTING) or isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)
               for n in ast.walk(node))


class Statements(ast.NodeTransformer):
    """Statements as functions over what they assign, and calls."""

    def __init__(self, function, whole):
        self.f, self.whole = function, whole

    def block(self, block):
        """Statements in place of statements."""
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

    def state(self, names, inner, like):
        """Functions that read and set the names, and parts of objects; and all of them as text."""
        f = self.f
        get, put, values = f.fresh("get"), f.fresh("set"), "__tonnage_values"
        read = [f.name(n) for n in names]
        targets, after = [f.name(n, True) for n in names], []
        for text, node in inner.items():
            load = copy.deepcopy(node)
            load.ctx = ast.Load()
            read.append(f.call("part", self.later(load), ast.Constant(text)))
            one = f.fresh("part")
            targets.append(f.name(one, True))
            keep = ast.Assign([copy.deepcopy(node)], f.name(one))
            after.append(ast.If(f.call("is_defined", f.name(one)), [keep], []))
        unpack = [ast.Assign([ast.Tuple(targets, ast.Store())], f.name(values))] if targets else []
        functions = [self.over(get, [ast.Return(ast.Tuple(read, ast.Load()))], [], like),
                     self.over(put, unpack + after, names, like, [values])]
        return functions, f.name(get), f.name(put), self.texts([*names, *inner])

    def statement(self, call, like):
        """A call that stands for itself."""
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), like))

    def texts(self, names):
        """Names as a tuple of texts."""
        return ast.Tuple([ast.Constant(n) for n in names], ast.Load())

    def used_after(self, names, node):
        """Those of the names that the function reads elsewhere."""
        used = loaded(self.whole, [node]) | self.f.parameters
        return [n for n in names if n in used or n.startswith("__tonnage_")]

    def visit_If(self, node):
        """``if``."""
        f = self.f
        if has([node], ast.Return) and not (ends(node.body) and ends(node.orelse)):
            # A return out of `try` or `with`: stays Python's, and so does what it is decided on.
            node.test, node.body, node.orelse = self.visit(node.test), self.block(node.body), self.block(node.orelse)
            return node
        names = sorted(assigned(node.body + node.orelse))
        inner = parts(node.body + node.orelse, set(names))
        exported = self.texts([*self.used_after(names, node), *inner])
        test = self.visit(node.test)
        yes, no = f.fresh("then"), f.fresh("else")
        returns = ends(node.body) and ends(node.orelse) and has([node], ast.Return)
        body, orelse = self.block(node.body), self.block(node.orelse)
        state, get, put, texts = self.state(names, inner, node)
        branches = [self.over(yes, body, names, node), self.over(no, orelse, names, node), *state]
        if returns:
            call = f.call("if_return", test, f.name(yes), f.name(no), get, put)
            return [*branches, ast.fix_missing_locations(ast.copy_location(ast.Return(call), node))]
        call = f.call("if_stmt", test, f.name(yes), f.name(no), get, put, texts, exported)
        return [*branches, self.statement(call, node)]

    def visit_While(self, node):
        """``while``."""
        f, names = self.f, sorted(assigned(node.body))
        inner, after = parts(node.body, set(names)), self.texts(self.used_after(names, node))
        test, body = f.fresh("test"), f.fresh("body")
        condition = self.visit(node.test)
        if getattr(node, "tonnage_broken", None):
            going = f.call("not_", f.name(node.tonnage_broken))
            condition = f.call("and_", self.later(going), self.later(condition))
        state, get, put, texts = self.state(names, inner, node)
        call = f.call("while_stmt", f.name(test), f.name(body), get, put, texts, after)
        return [self.over(test, [ast.Return(condition)], [], node), self.over(body, self.block(node.body), names, node),
                *state, self.statement(call, node)]

    def visit_For(self, node):
        """``for``."""
        f, names = self.f, sorted(assigned(node.body) | assigned([node.target]))
        inner, after = parts(node.body, set(names)), self.texts(self.used_after(names, node))
        body, item = f.fresh("body"), f.fresh("item")
        take = ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], f.name(item)), node))
        going = ast.Constant(None)
        if getattr(node, "tonnage_broken", None):
            going = self.later(f.call("not_", f.name(node.tonnage_broken)))
        iterated = self.visit(node.iter)
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Call):
            iterated.func.func.attr = "counting"  # a range that is gone through takes no size
        state, get, put, texts = self.state(names, inner, node)
        call = f.call("for_stmt", iterated, going, f.name(body), get, put, texts, after)
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
        inner = FunctionFlow(Statements)
        inner.count = self.f.count + 1000
        if not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk(node.body)):
            inner.rewrite(node)
        return node

    def visit_AsyncFunctionDef(self, node):
        return node

    def visit_ClassDef(self, node):
        return node

    def visit_Lambda(self, node):
        node.body = self.visit(node.body)
        return node
