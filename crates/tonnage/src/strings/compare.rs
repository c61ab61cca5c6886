//! Which strings are the same.

use std::collections::HashMap;

use tonnage_core::{Bool, DType, Result, TensorType};

use super::{Strings, step};
use crate::tensor::Tensor;

impl Strings {
    /// Where strings are the same as those that stand opposite; they may be of different shapes that broadcast to each other.
    ///
    /// ```
    /// use tonnage::strings::Strings;
    /// let x = Strings::new(&["a", "b"], [2])?;
    /// assert_eq!(x.equal(&Strings::scalar("b")?)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where shapes do not broadcast to each other.
    #[track_caller]
    pub fn equal(&self, other: &Strings) -> Result<Tensor> {
        let shape = self.shape().broadcast(&other.shape(), "equal")?;
        let made = step(
            "equal",
            &[self, other],
            &[],
            &[TensorType::new(DType::Bool, shape)],
            |strings, _, out| {
                let (sizes, equal) = out[0].parts::<Bool>();
                for (i, equal) in equal.iter_mut().enumerate() {
                    let (left, right) =
                        (strings[0].broadcast(sizes, i)?, strings[1].broadcast(sizes, i)?);
                    *equal = Bool::from(left == right);
                }
                Ok(())
            },
        )?;
        Ok(made[0].clone())
    }

    /// For each string the number, in logical order, of the first that is the same: `i64` in the same shape.
    ///
    /// ```
    /// use tonnage::strings::Strings;
    /// let x = Strings::new(&["a", "b", "a"], [3])?;
    /// assert_eq!(x.firsts()?.to_vec::<i64>()?, [0, 1, 0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where there is no memory.
    #[track_caller]
    pub fn firsts(&self) -> Result<Tensor> {
        let results = [TensorType::new(DType::I64, self.shape())];
        let made = step("firsts", &[self], &[], &results, |strings, _, out| {
            let mut first = HashMap::with_capacity(strings[0].len());
            for (i, number) in out[0].slice::<i64>().iter_mut().enumerate().take(strings[0].len()) {
                *number = *first.entry(strings[0].get(i)?).or_insert(i as i64);
            }
            Ok(())
        })?;
        Ok(made[0].clone())
    }
}
