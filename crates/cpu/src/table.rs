//! The table of kernels: what runs each op on a CPU. An op without an arm here does not compile.
//!
//! Decision: `docs/decisions/ops-and-kernels-apart.md`.

use tonnage_core::OpDef;
use tonnage_ops::OpId;

use crate::kernel::KernelDef;
use crate::{host, index, linalg, nn, random, reduce, shape, signal, state, world};

/// The kernel of an op; `None` for one that runs as a tile program, as other ops, as a view or a recipe, or by the executor.
///
/// ```
/// assert!(tonnage_cpu::kernel_of(&tonnage_ops::linalg::matmul::MATMUL).is_some());
/// assert!(tonnage_cpu::kernel_of(&tonnage_ops::math::add::ADD).is_none(), "a tile program");
/// ```
pub fn kernel_of(op: &OpDef) -> Option<&'static KernelDef> {
    Some(match OpId::of(op)? {
        OpId::Argmax => &reduce::arg::ARGMAX,
        OpId::Argmin => &reduce::arg::ARGMIN,
        OpId::Cumsum => &reduce::scan::CUMSUM,
        OpId::Cumprod => &reduce::scan::CUMPROD,
        OpId::LinearRecurrence => &reduce::linear_recurrence::LINEAR_RECURRENCE,
        OpId::Place => &shape::place::PLACE,
        OpId::Concat => &shape::concat::CONCAT,
        OpId::Diag => &shape::diag::DIAG,
        OpId::FoldPadding => &shape::fold_padding::FOLD_PADDING,
        OpId::Lengths => &shape::lengths::LENGTHS,
        OpId::Pad => &shape::pad::PAD,
        OpId::Bitcast => &shape::bitcast::BITCAST,
        OpId::Roll => &shape::roll::ROLL,
        OpId::RandomSeeded => &random::seeded::RANDOM_SEEDED,
        OpId::RandomGamma => &random::gamma::RANDOM_GAMMA,
        OpId::RandomPoisson => &random::poisson::RANDOM_POISSON,
        OpId::RandomCategorical => &random::categorical::RANDOM_CATEGORICAL,
        OpId::Matmul => &linalg::matmul::MATMUL,
        OpId::MatmulInteger => &linalg::matmul_integer::MATMUL_INTEGER,
        OpId::Cholesky => &linalg::cholesky::CHOLESKY,
        OpId::TriangularSolve => &linalg::triangular_solve::TRIANGULAR_SOLVE,
        OpId::Solve => &linalg::solve::SOLVE,
        OpId::Det => &linalg::det::DET,
        OpId::Slogdet => &linalg::slogdet::SLOGDET,
        OpId::Qr => &linalg::qr::QR,
        OpId::Eigh => &linalg::eigh::EIGH,
        OpId::Svd => &linalg::svd::SVD,
        OpId::HalfTril => &linalg::half_tril::HALF_TRIL,
        OpId::Symmetrize => &linalg::symmetrize::SYMMETRIZE,
        OpId::Fft => &signal::complex::FFT,
        OpId::Ifft => &signal::complex::IFFT,
        OpId::Rfft => &signal::rfft::RFFT,
        OpId::Irfft => &signal::irfft::IRFFT,
        OpId::FirstOf => &index::first_of::FIRST_OF,
        OpId::Gather => &index::gather::GATHER,
        OpId::GatherLast => &index::gather_last::GATHER_LAST,
        OpId::TakeAlongAxis => &index::take_along_axis::TAKE_ALONG_AXIS,
        OpId::PutAlongAxis => &index::put_along_axis::PUT_ALONG_AXIS,
        OpId::RowsToDense => &index::rows_to_dense::ROWS_TO_DENSE,
        OpId::ScatterAdd => &index::scatter_add::SCATTER_ADD,
        OpId::ScatterUpdate => &index::scatter_update::SCATTER_UPDATE,
        OpId::TopK => &index::top_k::TOP_K,
        OpId::BooleanMask => &index::boolean_mask::BOOLEAN_MASK,
        OpId::MaskScatter => &index::mask_scatter::MASK_SCATTER,
        OpId::Argsort => &index::argsort::ARGSORT,
        OpId::Bincount => &index::bincount::BINCOUNT,
        OpId::DynamicSlice => &index::dynamic_slice::DYNAMIC_SLICE,
        OpId::DynamicUpdate => &index::dynamic_update::DYNAMIC_UPDATE,
        OpId::GatherNd => &index::gather_nd::GATHER_ND,
        OpId::Histogram => &index::histogram::HISTOGRAM,
        OpId::Nonzero => &index::nonzero::NONZERO,
        OpId::ScatterNdAdd => &index::scatter_nd_add::SCATTER_ND_ADD,
        OpId::ScatterNdMax => &index::scatter_nd_max::SCATTER_ND_MAX,
        OpId::ScatterNdMin => &index::scatter_nd_min::SCATTER_ND_MIN,
        OpId::ScatterNdUpdate => &index::scatter_nd_update::SCATTER_ND_UPDATE,
        OpId::Searchsorted => &index::searchsorted::SEARCHSORTED,
        OpId::Sort => &index::sort::SORT,
        OpId::Unique => &index::unique::UNIQUE,
        OpId::Attention => &nn::attention::forward::ATTENTION,
        OpId::AttentionGrad => &nn::attention::grad::ATTENTION_GRAD,
        OpId::Conv => &nn::conv::forward::CONV,
        OpId::ConvTranspose => &nn::conv::transpose::CONV_TRANSPOSE,
        OpId::ConvFilterGrad => &nn::conv::filter_grad::CONV_FILTER_GRAD,
        OpId::AvgPool => &nn::pool::avg::AVG_POOL,
        OpId::AvgPoolGrad => &nn::pool::avg_grad::AVG_POOL_GRAD,
        OpId::MaxPool => &nn::pool::max::MAX_POOL,
        OpId::MaxPoolGrad => &nn::pool::max_grad::MAX_POOL_GRAD,
        OpId::MaxPoolPick => &nn::pool::max_pick::MAX_POOL_PICK,
        OpId::Resize => &nn::resize::forward::RESIZE,
        OpId::ResizeGrad => &nn::resize::grad::RESIZE_GRAD,
        OpId::RotaryEmbedding => &nn::rotary::ROTARY_EMBEDDING,
        OpId::LayerNorm => &nn::norm::layer::LAYER_NORM,
        OpId::LayerNormGrad => &nn::norm::layer_grad::LAYER_NORM_GRAD,
        OpId::GroupNorm => &nn::norm::group::GROUP_NORM,
        OpId::GroupNormGrad => &nn::norm::group_grad::GROUP_NORM_GRAD,
        OpId::Softmax => &nn::softmax::plain::SOFTMAX,
        OpId::SoftmaxGrad => &nn::softmax::plain_grad::SOFTMAX_GRAD,
        OpId::LogSoftmax => &nn::softmax::log::LOG_SOFTMAX,
        OpId::LogSoftmaxGrad => &nn::softmax::log_grad::LOG_SOFTMAX_GRAD,
        OpId::CrossEntropy => &nn::softmax::cross_entropy::CROSS_ENTROPY,
        OpId::CrossEntropyGrad => &nn::softmax::cross_entropy_grad::CROSS_ENTROPY_GRAD,
        OpId::CrossEntropyDense => &nn::softmax::cross_entropy_dense::CROSS_ENTROPY_DENSE,
        OpId::CrossEntropyDenseGrad => {
            &nn::softmax::cross_entropy_dense_grad::CROSS_ENTROPY_DENSE_GRAD
        }
        OpId::AssignRows => &state::assign_rows::ASSIGN_ROWS,
        OpId::AssignAddRows => &state::assign_add_rows::ASSIGN_ADD_ROWS,
        OpId::Print | OpId::Assertion | OpId::HostCallback | OpId::PureCallback => &host::HOST,
        OpId::AllReduce => &world::reduce::ALL_REDUCE,
        OpId::ReduceScatter => &world::reduce_scatter::REDUCE_SCATTER,
        OpId::AllGather => &world::all_gather::ALL_GATHER,
        OpId::Broadcast => &world::broadcast::BROADCAST,
        OpId::ReduceTo => &world::reduce::REDUCE_TO,
        OpId::GatherBlocks => &world::all_gather::GATHER_BLOCKS,
        OpId::ReduceBlocks => &world::reduce_scatter::REDUCE_BLOCKS,
        OpId::OwnBlock => &world::own_block::OWN_BLOCK,
        OpId::Add
        | OpId::Sub
        | OpId::Mul
        | OpId::Div
        | OpId::Maximum
        | OpId::Less
        | OpId::Equal
        | OpId::Neg
        | OpId::Square
        | OpId::Exp
        | OpId::Log
        | OpId::Tanh
        | OpId::Relu
        | OpId::ReluGrad
        | OpId::Cast
        | OpId::Where
        | OpId::Identity
        | OpId::StopGradient
        | OpId::Abs
        | OpId::Acos
        | OpId::Acosh
        | OpId::Asin
        | OpId::Asinh
        | OpId::Atan
        | OpId::Atan2
        | OpId::Atanh
        | OpId::BitwiseAnd
        | OpId::BitwiseNot
        | OpId::BitwiseOr
        | OpId::BitwiseXor
        | OpId::Ceil
        | OpId::Clip
        | OpId::Cos
        | OpId::Cosh
        | OpId::Digamma
        | OpId::DivideNoNan
        | OpId::Elu
        | OpId::Erf
        | OpId::Erfc
        | OpId::Expm1
        | OpId::Floor
        | OpId::FloorDiv
        | OpId::Fma
        | OpId::Gelu
        | OpId::GeluTanh
        | OpId::Greater
        | OpId::GreaterEqual
        | OpId::HardSigmoid
        | OpId::HardSwish
        | OpId::Hypot
        | OpId::IsFinite
        | OpId::IsInf
        | OpId::IsNan
        | OpId::LeakyRelu
        | OpId::LessEqual
        | OpId::Lgamma
        | OpId::Log1p
        | OpId::LogicalAnd
        | OpId::LogicalNot
        | OpId::LogicalOr
        | OpId::LogicalXor
        | OpId::Minimum
        | OpId::Mod
        | OpId::NotEqual
        | OpId::Polygamma
        | OpId::Pow
        | OpId::Reciprocal
        | OpId::Relu6
        | OpId::Round
        | OpId::Rsqrt
        | OpId::Selu
        | OpId::ShiftLeft
        | OpId::ShiftRight
        | OpId::Sigmoid
        | OpId::Sign
        | OpId::Silu
        | OpId::Sin
        | OpId::Sinh
        | OpId::Softplus
        | OpId::Softsign
        | OpId::Sqrt
        | OpId::SquaredDifference
        | OpId::Tan
        | OpId::Xlogy
        | OpId::Fused
        | OpId::FusedUpdate
        | OpId::Sum
        | OpId::Max
        | OpId::Mean
        | OpId::Prod
        | OpId::Min
        | OpId::Any
        | OpId::All
        | OpId::Var
        | OpId::Std
        | OpId::Logsumexp
        | OpId::Norm
        | OpId::CountNonzero
        | OpId::Transpose
        | OpId::Slice
        | OpId::Reshape
        | OpId::BroadcastTo
        | OpId::Fill
        | OpId::Range
        | OpId::DiagPart
        | OpId::ExpandDims
        | OpId::Eye
        | OpId::Linspace
        | OpId::OneHot
        | OpId::Repeat
        | OpId::Reverse
        | OpId::Split
        | OpId::Squeeze
        | OpId::Stack
        | OpId::Tile
        | OpId::Unstack
        | OpId::RandomNormal
        | OpId::RandomUniform
        | OpId::RandomTruncatedNormal
        | OpId::RandomBelow
        | OpId::RandomBits
        | OpId::Tril
        | OpId::Triu
        | OpId::Inv
        | OpId::Assign
        | OpId::AssignAdd
        | OpId::AssignSub
        | OpId::Call
        | OpId::Custom
        | OpId::Cond
        | OpId::Switch
        | OpId::WhileLoop
        | OpId::WhileGrad
        | OpId::Store
        | OpId::Spill
        | OpId::SpillWait
        | OpId::Unspill
        | OpId::UnspillWait => return None,
    })
}
