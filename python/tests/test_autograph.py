"""AutoGraph on Python values: a rewritten function does what the function does, whatever its statements."""

import pytest

from tonnage.autograph import transform

G = 5


def c_if(x):
    y = 1
    if x > 2:
        y = x
        z = y + 1
        y = z
    elif x < 0:
        y = -x
    return y


def c_ret(x):
    if x > 10:
        return 'a'
    if x > 5:
        y = x * 2
        if x > 6:
            return y
        x = x + 100
    else:
        if x == 3:
            return 'three'
    return x


def c_noret(x):
    if x > 2:
        return
    x += 1


def c_while(n):
    t = i = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        if i > 7:
            break
        t += i
    return t, i


def c_for(n):
    out = []
    for i in range(abs(n)):
        if i == 2: continue
        for j in range(3):
            if j == i: break
            out.append((i, j))
        else:
            out.append('else')
        if i == 5:
            return out, 'early'
    return out


def c_retloop(n):
    for i in range(10):
        for j in range(10):
            if i * j == n * 2:
                return i, j
    return None


def c_bool(x):
    a = x > 0 and x < 10 or x == -2
    b = not a
    c = 0 < x < 6 < 10
    d = x if a else -x
    e = (x and 5) or 7
    return a, b, c, d, e


def c_nested(x):
    def inner(y):
        if y > 2:
            return y * 2
        return y
    f = lambda q: inner(q) + 1 if q else 0
    return inner(x), f(x), [inner(k) for k in range(4) if k % 2]


def c_undefined(x):
    if x > 2:
        y = 1
    return y


def c_global(x):
    global G
    G = 5
    if x > 2:
        G = x
    return G


def make():
    n = 0
    def c(x):
        nonlocal n
        n = 0
        while n < x:
            n += 1
        return n
    return c


c_nonlocal = make()


def c_try(x):
    try:
        if x > 2:
            raise ValueError('a')
        y = 10 // x
    except ZeroDivisionError as e:
        y = 'zero'
    except ValueError:
        y = 'value'
    finally:
        z = 1
    return y, z


def c_with(x):
    import contextlib
    with contextlib.nullcontext(x) as v:
        if v > 1:
            return 'with'
    return v


def c_default(x, y=3, *args, k=4, **kw):
    if x > 1: y = y + k
    return y, args, kw


class A:
    def __init__(self): self.v = 1
    def c(self, x):
        if x > 1: self.v = x
        return self.v


class B(A):
    def c(self, x):
        if x > 100: return 0
        return super().c(x) + 1


def c_method(x):
    return B().c(x)


def c_aug(x):
    d = {'a': 1}
    for k in list(d):
        if x > 0:
            d[k] += x
    s = 0
    for i, (a, b) in enumerate([(1, 2), (3, 4)]):
        s += a * b + i
    return d, s


def c_comp(x):
    r = []
    while x > 0:
        r.append([i for i in range(x) if i % 2 and not i == 3])
        x -= 3
    return r, {k: v for k, v in zip('ab', range(2))}


def c_assert(x):
    assert x < 10, "big"
    return x


def c_walrus(x):
    if (y := x * 2) > 4 and x:
        return y
    return 0


def c_self(x):
    if x > 1:
        return x * c_self(x - 1)
    return c_self.__name__


def make_self():
    def c(x):
        if x > 1:
            return x + c(x - 1)
        return 1
    return c


c_self_nested = make_self()


def c_del(x):
    y = 3
    if x > 1:
        del y
        y = 4
    return y


def c_match(x):
    match x:
        case 1: r = 'one'
        case 3:
            if G: r = 'three'
        case _: r = 'other'
    return r


def c_loopvar(x):
    for i in range(3):
        pass
    return i


def c_carry(x):
    for i in range(4):
        if i == 0:
            acc = x
        else:
            acc = acc + i
    return acc


def c_star(x):
    a, *b = [1, 2, 3]
    if x > 1:
        a, *b = b
    return a, b


def c_tryret(x):
    for i in range(5):
        try:
            if i == x: return 'hit'
            if i == 2: continue
            if i == 3: break
            y = 1 // (i - 1)
        except ZeroDivisionError:
            if x < 0: continue
            y = 'z'
        finally:
            q = i
    return y, q


def c_whileelse(x):
    i = 0
    while i < 4:
        if i == x: break
        i += 1
    else:
        return 'none'
    return i


def c_retundef(x):
    while x > 3:
        x -= 1
        if x == 5: return 'five'
    return x


def c_lambda_default(x):
    fs = [lambda a, i=i: a + i for i in range(3)]
    return [f(x) for f in fs] if x > 0 else None


def c_classin(x):
    class K:
        z = x
        def m(self):
            if self.z > 1: return 'big'
            return 'small'
    return K().m()


def c_gen(x):
    return sum(i for i in range(abs(x)) if i > 1 and not i == 4)


def c_kw(x):
    return dict(a=1, **({'b': 2} if x else {}))


CASES = {name: value for name, value in dict(globals()).items() if name.startswith("c_")}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_rewritten_function_does_what_the_function_does(name):
    plain = CASES[name]
    made = transform.rewritten(plain)
    assert made is not plain

    def outcome(function, x):
        try:
            return "value", function(x)
        except Exception as error:
            return "error", type(error)

    for x in [0, 1, 3, 7, 12, -2]:
        assert outcome(made, x) == outcome(plain, x)
