"""What Keras' layers, models and variables derive from: objects that know which others they hold.

TensorFlow's checkpoints follow these; Tonnage's (``train.objects``) follow the attributes of any object, so that here nothing has to be wrapped.
"""

import functools


class Trackable:
    """An object whose state can be saved."""

    def _track_trackable(self, trackable, name, overwrite=False):
        """Notes that it holds another under a name."""
        known = self.__dict__.setdefault("_tonnage_tracked", {})
        if not overwrite and known.get(name, trackable) is not trackable:
            raise ValueError(f"Called Trackable._track_trackable() with name='{name}', but a Trackable with this name is already declared as "
                             "a dependency.")
        known[name] = trackable
        return trackable

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """What it holds, by name."""
        return dict(self.__dict__.get("_tonnage_tracked", {}))


class AutoTrackable(Trackable):
    """The same; what is an attribute is held."""

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        held = {name: value for name, value in vars(self).items() if isinstance(value, Trackable)}
        return held | super()._trackable_children(save_type, **kwargs)


def no_automatic_dependency_tracking(method):
    """A method whose attributes are not tracked; here attributes are looked at when they are asked for, so it is the method itself."""

    @functools.wraps(method)
    def untracked(self, *args, **kwargs):
        return method(self, *args, **kwargs)

    return untracked


class ListWrapper(list):
    """A list that TensorFlow's objects hold; here they hold plain ones."""


class _DictWrapper(dict):
    """A dictionary that TensorFlow's objects hold; here they hold plain ones."""
