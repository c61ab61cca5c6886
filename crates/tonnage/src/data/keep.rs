//! Elements that are kept from the first time through a pipeline on, in memory or in a file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_core::Result;
use tonnage_core::error::bad_argument;

use super::pick::boxed;
use super::pipeline::{Elements, Form, Pipeline};
use crate::io::{SafeTensors, save_safetensors};
use crate::tensor::Tensor;
use crate::tree::{Tree, leaves};

/// How many elements a file has.
const ELEMENTS: &str = "elements";

impl<T: Tree + Send + Sync + 'static> Pipeline<T> {
    /// Keeps elements in memory from the first time on that came to its end without an error. Rows of tensors are in memory as they are.
    ///
    /// ```
    /// use tonnage::{Elementwise, Tensor, data::Pipeline};
    /// let kept = Pipeline::range(0, Some(3), 1).map(|x: Tensor| x.square()).cache();
    /// let sum = || -> tonnage::Result<i64> { kept.iter().map(|x| x?.scalar::<i64>()).sum() };
    /// assert_eq!((sum()?, sum()?), (5, 5)); // squares are computed the first time alone
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn cache(self) -> Pipeline<T> {
        if let Form::Rows(_) = self.form() {
            return self;
        }
        let kept: Arc<Mutex<Option<Arc<Vec<T>>>>> = Arc::default();
        let count = self.count();
        Pipeline::of(count, move |pass| {
            if let Some(all) = kept.lock().unwrap_or_else(PoisonError::into_inner).clone() {
                return shared(all);
            }
            let most = count.known().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
            let elements = pass.noted("cache", most, self.elements(pass));
            if pass.is_looking() {
                return elements;
            }
            let kept = kept.clone();
            first_time(elements, move |all| {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(all));
                Ok(())
            })
        })
    }

    /// Keeps elements in a file from the first time on that came to its end without an error; if there is a file of the name they are read from
    /// there, one at a time. `like` gives an element that is nested as they are.
    #[must_use]
    pub fn cache_file(
        self,
        path: impl Into<PathBuf>,
        like: impl Fn() -> Result<T> + Send + Sync + 'static,
    ) -> Pipeline<T> {
        let (path, like): (PathBuf, _) = (path.into(), Arc::new(like));
        Pipeline::of(self.count(), move |pass| {
            if path.exists() {
                return match saved(&path, &*like) {
                    Ok(elements) => elements,
                    Err(error) => boxed(std::iter::once(Err(error))),
                };
            }
            let elements = self.elements(pass);
            if pass.is_looking() {
                return elements;
            }
            let path = path.clone();
            first_time(elements, move |all| save(&path, &all))
        })
    }
}

fn shared<T: Tree + Send + Sync + 'static>(all: Arc<Vec<T>>) -> Elements<T> {
    boxed((0..all.len()).filter_map(move |i| all.get(i).map(|one| Ok(one.share()))))
}

/// Elements as they come; at their end all of them, if none failed.
fn first_time<T: Tree + Send + 'static>(
    mut elements: Elements<T>,
    whole: impl FnOnce(Vec<T>) -> Result<()> + Send + 'static,
) -> Elements<T> {
    let mut held = Some((Vec::new(), whole));
    boxed(std::iter::from_fn(move || match elements.next() {
        Some(Ok(element)) => {
            if let Some((all, _)) = &mut held {
                all.push(element.share());
            }
            Some(Ok(element))
        }
        Some(Err(error)) => {
            held = None;
            Some(Err(error))
        }
        None => {
            let (all, whole) = held.take()?;
            whole(all).err().map(Err)
        }
    }))
}

fn save<T: Tree>(path: &Path, all: &[T]) -> Result<()> {
    let mut named: Vec<(String, Tensor)> = Vec::new();
    for (number, element) in all.iter().enumerate() {
        let parts = leaves(element).into_iter().enumerate();
        named.extend(parts.map(|(part, tensor)| (format!("{number}/{part}"), tensor)));
    }
    // Without a tensor there is nothing that a file could have.
    if named.is_empty() {
        return Ok(());
    }
    let count = all.len().to_string();
    let named = named.iter().map(|(name, tensor)| (name.as_str(), tensor));
    save_safetensors(path, named, &[(ELEMENTS, &count)])
}

fn saved<T: Tree + Send + Sync + 'static>(
    path: &Path,
    like: &dyn Fn() -> Result<T>,
) -> Result<Elements<T>> {
    let file = SafeTensors::open(path)?;
    let count: usize = file.note(ELEMENTS).and_then(|n| n.parse().ok()).ok_or_else(|| {
        let what = format!("{} holds no elements of a pipeline", path.display());
        bad_argument("cache_file", what, "use another name, or remove the file")
    })?;
    let like = like()?;
    Ok(boxed((0..count).map(move |number| {
        let mut part = 0;
        like.share().map(&mut |_| {
            part += 1;
            file.read(&format!("{number}/{}", part - 1))
        })
    })))
}
