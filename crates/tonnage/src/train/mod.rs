//! Training: the loop over data, with a budget, checkpoints, and what it takes known beforehand.

mod agree;
mod callback;
mod checkpoint;
mod choose;
mod elastic;
mod evaluate;
mod fit;
mod learn;
mod load;
mod ranks;
mod run;
mod sharding;
mod step;
mod sums;

pub use callback::{Callback, EarlyStopping, Epoch, Go, Log, Progress};
pub use checkpoint::{Checkpoints, Position, Which};
pub use elastic::{remove_saved, save_across};
pub use evaluate::{Evaluation, evaluate, mean_loss, predictor};
pub use fit::{Fit, History};
pub use load::{Loaded, Loading, load, load_weights, save_weights};
pub use sharding::{ShardedPlan, Sharding};
