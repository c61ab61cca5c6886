"""Walking nested values: lists, tuples, dictionaries and named tuples. What ``tf.nest`` has."""


def is_nested(structure):
    """Whether it is made of parts."""
    return isinstance(structure, (list, tuple, dict))


def flatten(structure):
    """The leaves in order; a dictionary's by its sorted keys."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [leaf for part in structure for leaf in flatten(part)]
    return [structure]


def pack_sequence_as(structure, flat_sequence):
    """Leaves nested as ``structure`` is."""
    leaves = iter(flat_sequence)
    made = _pack(structure, leaves)
    if next(leaves, leaves) is not leaves:
        raise ValueError("there are more leaves than the structure has")
    return made


def _pack(structure, leaves):
    if isinstance(structure, dict):
        made = {key: _pack(structure[key], leaves) for key in sorted(structure)}
        return type(structure)((key, made[key]) for key in structure)
    if isinstance(structure, tuple) and hasattr(structure, "_make"):
        return structure._make(_pack(part, leaves) for part in structure)
    if isinstance(structure, (list, tuple)):
        return type(structure)(_pack(part, leaves) for part in structure)
    try:
        return next(leaves)
    except StopIteration:
        raise ValueError("there are fewer leaves than the structure has") from None


def map_structure(func, *structures, **kwargs):
    """What a function makes of the leaves, nested as they are."""
    unknown = kwargs.keys() - {"check_types", "expand_composites"}
    if unknown:
        raise ValueError(f"Only valid keyword arguments are `check_types` and `expand_composites`, not: {sorted(unknown)}")
    for other in structures[1:]:
        assert_same_structure(structures[0], other)
    flat = [flatten(structure) for structure in structures]
    return pack_sequence_as(structures[0], [func(*leaves) for leaves in zip(*flat)])


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """Raises where two values are nested differently."""
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"The two structures don't have the same nested structure: {nest1!r:.80} and {nest2!r:.80}")
    if not is_nested(nest1):
        return
    if check_types and isinstance(nest1, dict) != isinstance(nest2, dict):
        raise TypeError(f"The two structures don't have the same type: {type(nest1)} and {type(nest2)}")
    if isinstance(nest1, dict):
        if set(nest1) != set(nest2):
            raise ValueError(f"The two dictionaries don't have the same keys: {list(nest1)} and {list(nest2)}")
        pairs = [(nest1[key], nest2[key]) for key in nest1]
    else:
        if len(nest1) != len(nest2):
            raise ValueError(f"The two structures don't have the same number of elements: {len(nest1)} and {len(nest2)}")
        pairs = zip(nest1, nest2)
    for a, b in pairs:
        assert_same_structure(a, b, check_types)
