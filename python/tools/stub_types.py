"""The types of parameters that ``stubs.py`` writes, by their names.

TensorFlow's names of parameters mean the same wherever they stand, so that one table serves most functions. ``EXACT`` has those of one
function, class or method, and goes first. What no table has goes by its default, or is ``Any``.
"""

from stub_names import ARITHMETIC, LIKE_TENSORS

# Parameters that are tensors, or what a tensor is made of.
TENSORS = """
a alpha arr b beta bias chol clip_norm clip_value_max clip_value_min condition constant_values data diagonal features
filter filters frequency_weights ids imag indices input input_ input_tensor key labels lam lengths logits mask matrix maxval
mean minval offset on_value off_value pad_value paddings padding_value params partitions predictions query real repeats rhs scalar
scale segment_ids shift signal sorted_sequence start stddev stop t targets tensor updates use_norm value value_range values variance
variance_epsilon weights x y limit delta
""".split()

# Of ops and all that is not Keras.
PARAMETERS = {
    **{name: "TensorLike" for name in TENSORS},
    **{name: "ShapeLike" for name in "shape dims batch_shape dense_shape element_shape noise_shape output_shape shape_x shape_y".split()},
    **{name: "DTypeLike" for name in ("dtype dtype_hint index_type out_idx out_type output_type tensor_dtype tf_type "
                                      "type_value").split()},
    **{name: "SupportsIndex" for name in (
        "num num_classes num_columns num_cols num_lower num_partitions num_rows num_samples num_segments num_upper k nbins rank "
        "window_length frame_length frame_step fft_length batch_dims block_size begin_mask end_mask ellipsis_mask new_axis_mask "
        "shrink_axis_mask branch_index maxlen minlength maxlength depth index stack_height_limit path_length_limit").split()},
    **{name: "Callable[..., Any]" for name in "fn func f body cond true_fn false_fn map_func predicate reduce_func scan_func".split()},
    **{name: "Path" for name in ("path file_prefix save_path directory checkpoint_dir ckpt_dir_or_file filename file_pattern "
                                 "logdir").split()},
    "name": "str | None",
    "message": "str | None",
    "summarize": "int | None",
    "axis": "Axes",
    "axes": "Axes",
    "perm": "TensorLike",
    "multiples": "TensorLike",
    "begin": "TensorLike",
    "end": "TensorLike",
    "size": "TensorLike",
    "strides": "TensorLike",
    "stride": "Ints",
    "ksize": "Ints",
    "dilations": "Ints",
    "padding": "str | Sequence[Sequence[int]]",
    "data_format": "str",
    "num_or_size_splits": "TensorLike",
    "ord": "str | float",
    "rcond": "TensorLike",
    "rtol": "TensorLike",
    "atol": "TensorLike",
    "rate": "TensorLike",
    "keepdims": "bool",
    "seed": "int",
    "budget": "Bytes",
    "bytes": "Bytes",
    "device": "Any",
    "device_name": "str | None",
    "maximum_iterations": "TensorLike",
    "parallel_iterations": "int",
    "num_parallel_calls": "int",
    "batch_size": "SupportsIndex",
    "buffer_size": "SupportsIndex",
    "count": "SupportsIndex",
    "num_shards": "SupportsIndex",
    "cycle_length": "int",
    "block_length": "int",
    "deterministic": "bool",
    "dataset": "Dataset",
    "inputs": "Any",
    "equation": "str",
    "trainable": "bool",
    "use_locking": "bool | None",
    "sparse_delta": "IndexedSlices",
    "validate_shape": "bool | None",
    "read_value": "bool",
    "control_inputs": "Any",
    "session": "Any",
}

# Of Keras.
KERAS = {
    **{name: "int" for name in (
        "units filters key_dim num_heads value_dim input_dim output_dim groups n height width num_tokens k num_classes decay_steps "
        "first_decay_steps warmup_steps seed batch_size epochs steps steps_per_epoch validation_steps validation_batch_size patience "
        "epoch batch maxlen sequence_length start_index end_index input_length index ndim max_ndim min_ndim top_k class_id "
        "ignore_class ema_overwrite_frequency gradient_accumulation_steps initial_epoch").split()},
    **{name: "Ints" for name in "kernel_size strides dilation_rate pool_size size axes attention_axes shared_axes output_padding".split()},
    **{name: "float" for name in (
        "rate stddev weight_decay clipnorm clipvalue global_clipnorm loss_scale_factor min_delta baseline decay_rate max_value "
        "min_value warmup_target recall precision specificity sensitivity initial_value_threshold offset").split()},
    **{name: "TensorLike" for name in "y_true y_pred sample_weight labels".split()},
    **{name: "Path" for name in "filepath path backup_dir filename".split()},
    "name": "str | None",
    "axis": "Ints",
    "shape": "ShapeLike",
    "batch_shape": "ShapeLike",
    "noise_shape": "ShapeLike",
    "target_shape": "ShapeLike",
    "dims": "Sequence[int]",
    "dtype": "DTypeLike | DTypePolicy",
    "activation": "Named",
    "recurrent_activation": "Named",
    "initializer": "Named | float",
    "regularizer": "Named",
    "constraint": "Named",
    "data_format": "str",
    "padding": "Any",
    "cropping": "Any",
    "learning_rate": "float | Tensor | Variable | Callable[..., Any]",
    "initial_learning_rate": "float | Tensor | Variable",
    "optimizer": "str | dict[str, Any] | Optimizer",
    "inner_optimizer": "Optimizer",
    "callbacks": "Sequence[Callback] | CallbackList",
    "logs": "dict[str, Any]",
    "verbose": "int | str | bool",
    "budget": "Bytes",
    "jit_compile": "bool | str",
    "save_freq": "int | str",
    "reduction": "str | None",
    "layer": "Layer",
    "cell": "Layer | Sequence[Layer]",
    "cells": "Sequence[Layer]",
    "custom_objects": "Mapping[str, Any]",
    "mask_value": "float",
    "threshold": "float",
    "thresholds": "float | Sequence[float]",
    "config": "dict[str, Any]",
    "weights": "Sequence[Any]",
    "arguments": "Mapping[str, Any]",
    "schedule": "Callable[..., float]",
    "print_fn": "Callable[[str], Any]",
    "function": "Callable[..., Any]",
    "fn": "Callable[..., Any]",
    "grads_and_vars": "Iterable[tuple[Any, Variable]]",
    "grads": "Iterable[Any]",
    "trainable_variables": "Iterable[Variable]",
    "var_list": "Iterable[Variable]",
    "variables": "Iterable[Variable]",
    "variable": "Variable",
    "reference_variable": "Variable",
    "tape": "GradientTape",
    "training": "Any",
    "scale": "Any",
    "mean": "Any",
    "variance": "Any",
}

# Parameters of one function, where the name alone says too little or something else.
EXACT = {
    **{f"strings.{name}.input": "TextLike" for name in (
        "as_string bytes_split length lower regex_full_match regex_replace split strip substr to_hash_bucket to_hash_bucket_fast "
        "to_hash_bucket_strong to_number unicode_decode unicode_decode_with_offsets unicode_split unicode_split_with_offsets "
        "unicode_transcode upper").split()},
    "strings.ngrams.data": "TextLike",
    "strings.to_hash_bucket_strong.key": "Sequence[int]",
    "_array.constant.value": "TextLike",
    "_array.convert_to_tensor.value": "TextLike",
    "io.encode_base64.input": "TextLike",
    "io.decode_base64.input": "TextLike",
    "io.decode_raw.input_bytes": "TextLike",
    "distribute.Strategy.reduce.axis": "Axes | None",
    "distribute.Strategy.shard.step": "Callable[..., Any]",
    "distribute.Strategy.shard.sharding": "str | None",
    "memory.plan_ranks.step": "Callable[..., Any]",
    "memory.plan_ranks.ranks": "int",
    "is_tensor.x": "object",
    "debugging.is_numeric_tensor.tensor": "object",
    "_array.concat.values": "Any",
    "_array.stack.values": "Any",
    "_array.unstack.num": "int",
    "_control.map_fn.dtype": "Any",
    "_control.switch_case.branch_index": "TensorLike",
    "_index.one_hot.depth": "TensorLike",
    "_index.sequence_mask.maxlen": "TensorLike",
    "_shape.TensorShape.__init__.dims": "ShapeLike | None",
    "_shape.TensorShape.is_compatible_with.other": "ShapeLike | None",
    "_shape.TensorShape.assert_is_compatible_with.other": "ShapeLike | None",
    "_shape.TensorShape.merge_with.other": "ShapeLike | None",
    "_shape.TensorShape.concatenate.other": "ShapeLike | None",
    "_shape.TensorShape.__add__.other": "ShapeLike | None",
    "_shape.TensorShape.__radd__.other": "ShapeLike | None",
    "_shape.TensorShape.assert_has_rank.rank": "int | None",
    "_shape.TensorShape.with_rank.rank": "int",
    "_shape.TensorSpec.from_tensor.tensor": "Tensor | Variable",
    "_shape.TensorSpec.is_compatible_with.value": "Any",
    "_shape.IndexedSlices.__init__.values": "Tensor",
    "_shape.IndexedSlices.__init__.indices": "Tensor",
    "_shape.IndexedSlices.__init__.dense_shape": "Any",
    "_shape.Dimension.__init__.value": "int",
    "_print.print.end": "str",
    "keras.models.sequential.Sequential.__init__.layers": "Sequence[Any]",
    "keras.models.sequential.Sequential.add.layer": "Layer | KerasTensor | Callable[..., Any]",
    "memory.set_limit.bytes": "Bytes | None",
    "memory.limit.bytes": "Bytes | None",
    "memory.NotSteady.__init__.message": "str",
    "onnx.Model.max_batch.name": "str",
    "onnx.Model.plans.bounds": "dict[str, int]",
    "_gradient.GradientTape.watch.tensor": "Any",
    "_gradient.GradientTape.batch_jacobian.source": "Tensor | Variable",
    "_tonnage.DType.__init__.given": "DTypeLike",
    "_tonnage.DType.is_compatible_with.other": "DTypeLike",
    "_tonnage.Tensor.set_shape.shape": "ShapeLike | None",
    "_tonnage.Tensor.__getitem__.key": "Any",
    "_tonnage.Plan.save.path": "str",
    "_tonnage.Timeline.save.path": "str",
    "_variable.Variable.__init__.initial_value": "TensorLike | Callable[[], TensorLike]",
    "_variable.Variable.__init__.constraint": "Callable[..., Any]",
    "_variable.Variable.__getitem__.key": "Any",
    "_variable.Variable.count_up_to.limit": "int",
    "_variable.Variable.assign.use_locking": "bool",
    "_tensor_array.TensorArray.__init__.size": "SupportsIndex",
    "_tensor_array.TensorArray.__init__.dynamic_size": "bool",
    "_tensor_array.TensorArray.__init__.clear_after_read": "bool",
    "_tensor_array.TensorArray.__init__.tensor_array_name": "str",
    "compat.v1.get_collection.key": "str",
    "compat.v1.get_collection_ref.key": "str",
    "config.LogicalDeviceConfiguration.__init__.memory_limit": "float",
    "data.dataset.Dataset.list_files.file_pattern": "Any",
    "data.dataset.Dataset.window.size": "SupportsIndex",
    "data.dataset.Dataset.window.shift": "SupportsIndex",
    "data.dataset.Dataset.window.stride": "SupportsIndex",
    "data.dataset.Dataset.sample_from_datasets.weights": "Any",
    "data.dataset.Dataset.enumerate.start": "int",
    "data.dataset.Dataset.counter.start": "int",
    "debugging.Assert.data": "Iterable[Any]",
    "debugging.assert_rank_in.ranks": "Sequence[int]",
    "debugging.assert_shapes.data": "Any",
    "debugging.assert_all_finite.message": "str",
    "debugging.check_numerics.message": "str",
    "keras.layers.core.Embedding.__init__.weights": "Any",
    "keras.layers.normalization.BatchNormalization.__init__.scale": "bool",
    "keras.layers.normalization.GroupNormalization.__init__.scale": "bool",
    "keras.layers.normalization.LayerNormalization.__init__.scale": "bool",
    "keras.layers.wrappers.Bidirectional.__init__.weights": "Any",
    "keras.models.training.Trainer.plan.batch": "Any",
    "keras.optimizers.schedules.PiecewiseConstantDecay.__init__.values": "Sequence[float]",
    "keras.optimizers.base.Optimizer.minimize.loss": "Tensor | Callable[[], Any]",
    "keras.utils.pad_sequences.padding": "str",
    "keras.utils.pad_sequences.dtype": "DTypeLike",
    "linalg.einsum.inputs": "TensorLike",
    "linalg.tensordot.axes": "TensorLike",
    "linalg.lstsq.l2_regularizer": "TensorLike",
    "math.global_norm.t_list": "Iterable[Any]",
    "math.clip_by_global_norm.t_list": "Iterable[Any]",
    "linalg.global_norm.t_list": "Iterable[Any]",
    "module.name_scope.__init__.name": "str",
    "nn.conv2d_transpose.output_shape": "TensorLike",
    "random.Generator.split.count": "int",
    "random.split.num": "int",
    "train.checkpoint.Checkpoint.restore.save_path": "Path | None",
    "train.manager.CheckpointManager.__init__.checkpoint": "Checkpoint",
    "train.manager.CheckpointManager.__init__.max_to_keep": "int",
    "train.manager.CheckpointManager.__init__.step_counter": "Variable",
    **{f"random.{name}.seed": "TensorLike" for name in (
        "stateless_categorical stateless_gamma stateless_normal stateless_truncated_normal stateless_uniform split fold_in").split()},
}

# Methods besides ``call`` and ``on_...`` that users write in classes of their own.
_HOOKS = {f"keras.{name}" for name in (
    "constraints.Constraint.__call__ initializers.Initializer.__call__ optimizers.schedules.LearningRateSchedule.__call__ "
    "regularizers.Regularizer.__call__ models.training.Trainer.compute_loss models.training.Trainer.compute_metrics "
    "optimizers.base.Optimizer.update_step").split()}


def of_method(where):
    """The type of a parameter by the method alone: of operators, and of those that users write in classes of their own, where type
    checkers would hold them to the types of the base."""
    cls, _, name = where.rpartition(".")
    if name in ("__eq__", "__ne__"):
        return "object"
    if where in _HOOKS or cls.startswith("keras.") and (name == "call" or name.startswith("on_")):
        return "Any"
    return "TensorLike" if name in ARITHMETIC and cls in LIKE_TENSORS else None


def by_suffix(name):
    """The type of a parameter by how its name ends."""
    return "Named" if name.endswith(("_initializer", "_regularizer", "_constraint")) else None
