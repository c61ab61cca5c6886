//! The macro that makes a struct a [`Tree`](crate::Tree) of its fields.

/// Makes a struct a [`Tree`](crate::Tree): its fields, in the order in which they are named, are trees
/// themselves. All fields must be named.
///
/// ```
/// use tonnage::{Tensor, function, tensor, tree};
/// struct Layer { weight: Tensor, bias: Option<Tensor>, scale: f64 }
/// tree!(Layer { weight, bias, scale });
/// struct Pair<T> { left: T, right: T }
/// tree!(Pair<T> { left, right });
///
/// let f = function(|(x, layers): (Tensor, Pair<Layer>)| {
///     let y = (x.matmul(&layers.left.weight)? * layers.left.scale)?;
///     let y = y.matmul(&layers.right.weight)?;
///     match &layers.right.bias { Some(bias) => y + bias, None => Ok(y) }
/// });
/// let eye = tensor([[1.0f32, 0.0], [0.0, 1.0]])?;
/// let left = Layer { weight: eye.clone(), bias: None, scale: 2.0 };
/// let right = Layer { weight: eye, bias: Some(tensor([10.0f32, 20.0])?), scale: 1.0 };
/// let y = f.call((tensor([[1.0f32, 2.0]])?, Pair { left, right }))?;
/// assert_eq!(y.to_vec::<f32>()?, [12.0, 24.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// An enum takes an implementation by hand: match on it in each method, name the variant in `describe`, and
/// leave the rest to what is inside.
#[macro_export]
macro_rules! tree {
    ($name:ident $(<$($generic:ident),+>)? { $($field:ident),* $(,)? }) => {
        impl $(<$($generic: $crate::Tree),+>)? $crate::Tree for $name $(<$($generic),+>)? {
            #[allow(unused_variables, reason = "a struct may be empty")]
            fn for_each(&self, f: &mut dyn FnMut(&$crate::Tensor)) {
                $($crate::Tree::for_each(&self.$field, f);)*
            }
            #[allow(unused_variables, reason = "a struct may be empty")]
            fn map(
                self,
                f: &mut dyn FnMut($crate::Tensor) -> $crate::Result<$crate::Tensor>,
            ) -> $crate::Result<Self> {
                Ok($name { $($field: $crate::Tree::map(self.$field, f)?,)* })
            }
            #[allow(unused_variables, reason = "a struct may be empty")]
            fn map_values(
                self,
                f: &mut dyn FnMut($crate::strings::Value) -> $crate::Result<$crate::strings::Value>,
            ) -> $crate::Result<Self> {
                Ok($name { $($field: $crate::Tree::map_values(self.$field, f)?,)* })
            }
            #[allow(unused_variables, reason = "a struct may be empty")]
            fn take(self, f: &mut dyn FnMut($crate::Tensor)) {
                $($crate::Tree::take(self.$field, f);)*
            }
            fn share(&self) -> Self {
                $name { $($field: $crate::Tree::share(&self.$field),)* }
            }
            fn describe(&self, text: &mut String) {
                text.push_str(concat!(stringify!($name), "{"));
                $(
                    text.push_str(concat!(stringify!($field), ": "));
                    $crate::Tree::describe(&self.$field, text);
                    text.push(',');
                )*
                text.push('}');
            }
            #[allow(unused_variables, reason = "a struct may be empty")]
            fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
                let before = path.len();
                $(
                    path.push_str(concat!(".", stringify!($field)));
                    $crate::Tree::paths(&self.$field, path, f);
                    path.truncate(before);
                )*
            }
        }
    };
}
