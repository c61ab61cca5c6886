//! The table: every op of Tonnage, defined in one row: shape rule, axes, what its gradient saves, gradient, cost, samples.
//!
//! To add an op, write its row and add its line to [`TABLE`]. Everything else (eager mode, tracing,
//! the planner, the tape, the docs, the conformance tests) reads the row. How a device runs it is that device's:
//! each has a table of kernels by [`OpId`].

pub mod control;
pub mod derive;
pub mod emit;
pub mod host;
pub mod index;
pub mod infer;
pub mod linalg;
pub mod math;
pub mod nn;
pub mod page;
pub mod random;
pub mod reduce;
pub mod rules;
pub mod samples;
pub mod shape;
pub mod signal;
pub mod state;
pub mod tile;
pub mod world;

use tonnage_core::OpDef;
use tonnage_core::grad::GradOps;

macro_rules! table {
    (ops { $($id:ident = $row:path,)* } planner { $($made:ident = $made_row:path,)* }) => {
        /// A dense number for every op, in the table's order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each is its row's name")]
        #[repr(u16)]
        pub enum OpId { $($id,)* $($made,)* }

        impl OpId {
            /// All of them.
            pub const ALL: &[OpId] = &[$(OpId::$id,)* $(OpId::$made,)*];
        }

        /// Every op that a user or a gradient rule applies.
        pub static TABLE: &[&OpDef] = &[$(&$row,)*];

        // A row says its own number.
        const _: () = {
            $(assert!($row.id == OpId::$id as u16, stringify!($id));)*
            $(assert!($made_row.id == OpId::$made as u16, stringify!($made));)*
        };
    };
}

impl OpId {
    /// The number of an op; `None` for a row that stands in no table.
    pub fn of(op: &OpDef) -> Option<OpId> {
        OpId::ALL.get(usize::from(op.id)).copied()
    }
}

table! { ops {
    Add = math::add::ADD,
    Sub = math::sub::SUB,
    Mul = math::mul::MUL,
    Div = math::div::DIV,
    Maximum = math::extremum::MAXIMUM,
    Less = math::comparison::LESS,
    Equal = math::comparison::EQUAL,
    Neg = math::neg::NEG,
    Square = math::square::SQUARE,
    Exp = math::exp::EXP,
    Log = math::log::LOG,
    Tanh = math::tanh::TANH,
    Relu = math::relu::RELU,
    ReluGrad = math::relu_grad::RELU_GRAD,
    Cast = math::cast::CAST,
    Where = math::where_::WHERE,
    Identity = math::identity::IDENTITY,
    StopGradient = math::stop_gradient::STOP_GRADIENT,
    Abs = math::abs::ABS,
    Acos = math::acos::ACOS,
    Acosh = math::acosh::ACOSH,
    Asin = math::asin::ASIN,
    Asinh = math::asinh::ASINH,
    Atan = math::atan::ATAN,
    Atan2 = math::atan2::ATAN2,
    Atanh = math::atanh::ATANH,
    BitwiseAnd = math::bitwise::BITWISE_AND,
    BitwiseNot = math::bitwise::BITWISE_NOT,
    BitwiseOr = math::bitwise::BITWISE_OR,
    BitwiseXor = math::bitwise::BITWISE_XOR,
    Ceil = math::rounding::CEIL,
    Clip = math::clip::CLIP,
    Cos = math::cos::COS,
    Cosh = math::cosh::COSH,
    Digamma = math::digamma::DIGAMMA,
    DivideNoNan = math::divide_no_nan::DIVIDE_NO_NAN,
    Elu = math::elu::ELU,
    Erf = math::erf::ERF,
    Erfc = math::erfc::ERFC,
    Expm1 = math::expm1::EXPM1,
    Floor = math::rounding::FLOOR,
    FloorDiv = math::floor_div::FLOOR_DIV,
    Fma = math::fma::FMA,
    Gelu = math::gelu::GELU,
    GeluTanh = math::gelu_tanh::GELU_TANH,
    Greater = math::comparison::GREATER,
    GreaterEqual = math::comparison::GREATER_EQUAL,
    HardSigmoid = math::hard_sigmoid::HARD_SIGMOID,
    HardSwish = math::hard_swish::HARD_SWISH,
    Hypot = math::hypot::HYPOT,
    IsFinite = math::classification::IS_FINITE,
    IsInf = math::classification::IS_INF,
    IsNan = math::classification::IS_NAN,
    LeakyRelu = math::leaky_relu::LEAKY_RELU,
    LessEqual = math::comparison::LESS_EQUAL,
    Lgamma = math::lgamma::LGAMMA,
    Log1p = math::log1p::LOG1P,
    LogicalAnd = math::logical::LOGICAL_AND,
    LogicalNot = math::logical::LOGICAL_NOT,
    LogicalOr = math::logical::LOGICAL_OR,
    LogicalXor = math::logical::LOGICAL_XOR,
    Minimum = math::extremum::MINIMUM,
    Mod = math::mod_::MOD,
    NotEqual = math::comparison::NOT_EQUAL,
    Polygamma = math::polygamma::POLYGAMMA,
    Pow = math::pow::POW,
    Reciprocal = math::reciprocal::RECIPROCAL,
    Relu6 = math::relu6::RELU6,
    Round = math::rounding::ROUND,
    Rsqrt = math::rsqrt::RSQRT,
    Selu = math::selu::SELU,
    ShiftLeft = math::bitwise::SHIFT_LEFT,
    ShiftRight = math::bitwise::SHIFT_RIGHT,
    Sigmoid = math::sigmoid::SIGMOID,
    Sign = math::sign::SIGN,
    Silu = math::silu::SILU,
    Sin = math::sin::SIN,
    Sinh = math::sinh::SINH,
    Softplus = math::softplus::SOFTPLUS,
    Softsign = math::softsign::SOFTSIGN,
    Sqrt = math::sqrt::SQRT,
    SquaredDifference = math::squared_difference::SQUARED_DIFFERENCE,
    Tan = math::tan::TAN,
    Xlogy = math::xlogy::XLOGY,
    Fused = tile::fused::FUSED,
    FusedUpdate = tile::fused_update::FUSED_UPDATE,
    Sum = reduce::sum::SUM,
    Max = reduce::extremum::MAX,
    Mean = reduce::mean::MEAN,
    Prod = reduce::prod::PROD,
    Min = reduce::extremum::MIN,
    Any = reduce::truth::ANY,
    All = reduce::truth::ALL,
    Var = reduce::var::VAR,
    Std = reduce::std_::STD,
    Logsumexp = reduce::logsumexp::LOGSUMEXP,
    Norm = reduce::norm::NORM,
    CountNonzero = reduce::count_nonzero::COUNT_NONZERO,
    Argmax = reduce::arg::ARGMAX,
    Argmin = reduce::arg::ARGMIN,
    Cumsum = reduce::cumsum::CUMSUM,
    Cumprod = reduce::cumprod::CUMPROD,
    LinearRecurrence = reduce::linear_recurrence::LINEAR_RECURRENCE,
    Transpose = shape::transpose::TRANSPOSE,
    Slice = shape::slice::SLICE,
    Place = shape::place::PLACE,
    Reshape = shape::reshape::RESHAPE,
    Bitcast = shape::bitcast::BITCAST,
    BroadcastTo = shape::broadcast_to::BROADCAST_TO,
    Fill = shape::fill::FILL,
    Range = shape::range::RANGE,
    Concat = shape::concat::CONCAT,
    Diag = shape::diag::DIAG,
    DiagPart = shape::diag_part::DIAG_PART,
    ExpandDims = shape::expand_dims::EXPAND_DIMS,
    Eye = shape::eye::EYE,
    FoldPadding = shape::fold_padding::FOLD_PADDING,
    Lengths = shape::lengths::LENGTHS,
    Linspace = shape::linspace::LINSPACE,
    OneHot = shape::one_hot::ONE_HOT,
    Pad = shape::pad::PAD,
    Repeat = shape::repeat::REPEAT,
    Reverse = shape::reverse::REVERSE,
    Roll = shape::roll::ROLL,
    Split = shape::split::SPLIT,
    Squeeze = shape::squeeze::SQUEEZE,
    Stack = shape::stack::STACK,
    Tile = shape::tile::TILE,
    Unstack = shape::unstack::UNSTACK,
    RandomNormal = random::distribution::RANDOM_NORMAL,
    RandomUniform = random::distribution::RANDOM_UNIFORM,
    RandomTruncatedNormal = random::distribution::RANDOM_TRUNCATED_NORMAL,
    RandomBelow = random::below::RANDOM_BELOW,
    RandomBits = random::bits::RANDOM_BITS,
    RandomSeeded = random::seeded::RANDOM_SEEDED,
    RandomGamma = random::gamma::RANDOM_GAMMA,
    RandomPoisson = random::poisson::RANDOM_POISSON,
    RandomCategorical = random::categorical::RANDOM_CATEGORICAL,
    Matmul = linalg::matmul::MATMUL,
    MatmulInteger = linalg::matmul_integer::MATMUL_INTEGER,
    Cholesky = linalg::cholesky::CHOLESKY,
    TriangularSolve = linalg::triangular_solve::TRIANGULAR_SOLVE,
    Tril = linalg::tril::TRIL,
    Triu = linalg::triu::TRIU,
    Solve = linalg::solve::SOLVE,
    Inv = linalg::inv::INV,
    Det = linalg::det::DET,
    Slogdet = linalg::slogdet::SLOGDET,
    Qr = linalg::qr::QR,
    Eigh = linalg::eigh::EIGH,
    Svd = linalg::svd::SVD,
    HalfTril = linalg::half_tril::HALF_TRIL,
    Symmetrize = linalg::symmetrize::SYMMETRIZE,
    Fft = signal::fft::FFT,
    Ifft = signal::ifft::IFFT,
    Rfft = signal::rfft::RFFT,
    Irfft = signal::irfft::IRFFT,
    FirstOf = index::first_of::FIRST_OF,
    Gather = index::gather::GATHER,
    GatherLast = index::gather_last::GATHER_LAST,
    TakeAlongAxis = index::take_along_axis::TAKE_ALONG_AXIS,
    PutAlongAxis = index::put_along_axis::PUT_ALONG_AXIS,
    RowsToDense = index::rows_to_dense::ROWS_TO_DENSE,
    ScatterAdd = index::scatter_add::SCATTER_ADD,
    ScatterUpdate = index::scatter_update::SCATTER_UPDATE,
    TopK = index::top_k::TOP_K,
    BooleanMask = index::boolean_mask::BOOLEAN_MASK,
    MaskScatter = index::mask_scatter::MASK_SCATTER,
    Argsort = index::argsort::ARGSORT,
    Bincount = index::bincount::BINCOUNT,
    DynamicSlice = index::dynamic_slice::DYNAMIC_SLICE,
    DynamicUpdate = index::dynamic_update::DYNAMIC_UPDATE,
    GatherNd = index::gather_nd::GATHER_ND,
    Histogram = index::histogram::HISTOGRAM,
    Nonzero = index::nonzero::NONZERO,
    ScatterNdAdd = index::scatter_nd_add::SCATTER_ND_ADD,
    ScatterNdMax = index::scatter_nd_max::SCATTER_ND_MAX,
    ScatterNdMin = index::scatter_nd_min::SCATTER_ND_MIN,
    ScatterNdUpdate = index::scatter_nd_update::SCATTER_ND_UPDATE,
    Searchsorted = index::searchsorted::SEARCHSORTED,
    Sort = index::sort::SORT,
    Unique = index::unique::UNIQUE,
    Attention = nn::attention::forward::ATTENTION,
    AttentionGrad = nn::attention::grad::ATTENTION_GRAD,
    Conv = nn::conv::forward::CONV,
    ConvTranspose = nn::conv::transpose::CONV_TRANSPOSE,
    ConvFilterGrad = nn::conv::filter_grad::CONV_FILTER_GRAD,
    AvgPool = nn::pool::avg::AVG_POOL,
    AvgPoolGrad = nn::pool::avg_grad::AVG_POOL_GRAD,
    MaxPool = nn::pool::max::MAX_POOL,
    MaxPoolGrad = nn::pool::max_grad::MAX_POOL_GRAD,
    MaxPoolPick = nn::pool::max_pick::MAX_POOL_PICK,
    Resize = nn::resize::forward::RESIZE,
    ResizeGrad = nn::resize::grad::RESIZE_GRAD,
    RotaryEmbedding = nn::rotary::ROTARY_EMBEDDING,
    LayerNorm = nn::norm::layer::LAYER_NORM,
    LayerNormGrad = nn::norm::layer_grad::LAYER_NORM_GRAD,
    GroupNorm = nn::norm::group::GROUP_NORM,
    GroupNormGrad = nn::norm::group_grad::GROUP_NORM_GRAD,
    Softmax = nn::softmax::plain::SOFTMAX,
    SoftmaxGrad = nn::softmax::plain_grad::SOFTMAX_GRAD,
    LogSoftmax = nn::softmax::log::LOG_SOFTMAX,
    LogSoftmaxGrad = nn::softmax::log_grad::LOG_SOFTMAX_GRAD,
    CrossEntropy = nn::softmax::cross_entropy::CROSS_ENTROPY,
    CrossEntropyGrad = nn::softmax::cross_entropy_grad::CROSS_ENTROPY_GRAD,
    CrossEntropyDense = nn::softmax::cross_entropy_dense::CROSS_ENTROPY_DENSE,
    CrossEntropyDenseGrad = nn::softmax::cross_entropy_dense_grad::CROSS_ENTROPY_DENSE_GRAD,
    Assign = state::assign::ASSIGN,
    AssignAdd = state::assign_add::ASSIGN_ADD,
    AssignSub = state::assign_sub::ASSIGN_SUB,
    AssignRows = state::assign_rows::ASSIGN_ROWS,
    AssignAddRows = state::assign_add_rows::ASSIGN_ADD_ROWS,
    Print = host::print::PRINT,
    Assertion = host::assertion::ASSERTION,
    HostCallback = host::callback::HOST_CALLBACK,
    PureCallback = host::pure::PURE_CALLBACK,
    AllReduce = world::all_reduce::ALL_REDUCE,
    ReduceScatter = world::reduce_scatter::REDUCE_SCATTER,
    AllGather = world::all_gather::ALL_GATHER,
    Broadcast = world::broadcast::BROADCAST,
    ReduceTo = world::reduce_to::REDUCE_TO,
    GatherBlocks = world::gather_blocks::GATHER_BLOCKS,
    ReduceBlocks = world::reduce_blocks::REDUCE_BLOCKS,
    OwnBlock = world::own_block::OWN_BLOCK,
    Call = control::call::CALL,
    Custom = control::custom::CUSTOM,
    Cond = control::cond::COND,
    Switch = control::switch::SWITCH,
    WhileLoop = control::while_loop::WHILE_LOOP,
    WhileGrad = control::while_grad::WHILE_GRAD,
} planner {
    Store = tile::fused_store::STORE,
    Spill = state::spill::SPILL,
    SpillWait = state::spill::SPILL_WAIT,
    Unspill = state::spill::UNSPILL,
    UnspillWait = state::spill::UNSPILL_WAIT,
} }

/// The row of that name.
///
/// ```
/// assert_eq!(tonnage_ops::find("tanh").map(|op| op.name), Some("tanh"));
/// assert!(tonnage_ops::find("tanhh").is_none());
/// ```
pub fn find(name: &str) -> Option<&'static OpDef> {
    TABLE.iter().copied().find(|op| op.name == name)
}

/// The ops that the gradient walker itself uses.
pub static GRAD_OPS: GradOps = GradOps {
    add: &math::add::ADD,
    fill: &shape::fill::FILL,
    scatter_add: &index::scatter_add::SCATTER_ADD,
    rows_to_dense: &index::rows_to_dense::ROWS_TO_DENSE,
    gather: &index::gather::GATHER,
    reshape: &shape::reshape::RESHAPE,
};
