//! Windows over images, as users write them: [`Conv`] and [`Pool`]. An image is `[batch, ..., channels]`, with one to
//! three spatial axes between.

use smallvec::{SmallVec, smallvec};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{Dim, Shape, Sizes, window};

/// A length for each spatial axis, or one for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerAxis(Sizes);

impl From<usize> for PerAxis {
    fn from(all: usize) -> PerAxis {
        PerAxis(smallvec![all])
    }
}

impl<const N: usize> From<[usize; N]> for PerAxis {
    fn from(each: [usize; N]) -> PerAxis {
        PerAxis(each.as_slice().into())
    }
}

impl From<&[usize]> for PerAxis {
    fn from(each: &[usize]) -> PerAxis {
        PerAxis(each.into())
    }
}

impl PerAxis {
    /// One for each of `axes` axes.
    fn spread(&self, op: &'static str, axes: usize, of: &str) -> Result<Sizes> {
        match &self.0[..] {
            [all] => Ok(Sizes::from_elem(*all, axes)),
            each if each.len() == axes => Ok(each.into()),
            each => {
                let what = format!("a {of} of {each:?} for {axes} spatial axes");
                Err(bad_argument(op, what, "give one for all, or one for each"))
            }
        }
    }
}

/// How far an image is thought to go on beyond its edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Padding {
    /// Not at all.
    Valid,
    /// As far as it takes for `length / stride` windows, rounded up; as much before as after, or one less.
    Same,
    /// So far before and after each spatial axis; one pair stands for all.
    Of(SmallVec<[[usize; 2]; 3]>),
}

impl From<usize> for Padding {
    fn from(everywhere: usize) -> Padding {
        Padding::Of(smallvec![[everywhere; 2]])
    }
}

impl<const N: usize> From<[[usize; 2]; N]> for Padding {
    fn from(each: [[usize; 2]; N]) -> Padding {
        Padding::Of(each.as_slice().into())
    }
}

/// Windows of known sizes, with padding still to be found out.
struct Sliding<'a> {
    op: &'static str,
    size: Sizes,
    stride: Sizes,
    dilation: Sizes,
    padding: &'a Padding,
}

impl Sliding<'_> {
    /// From the first tap of a window to one past the last. Sizes of 0 are refused by the type rule.
    fn reach(&self, axis: usize) -> usize {
        self.size[axis].saturating_sub(1).saturating_mul(self.dilation[axis]).saturating_add(1)
    }

    /// Padding to the result's length of `length / stride`, rounded up.
    fn same(&self, axis: usize, length: &Dim) -> Result<[usize; 2]> {
        let (reach, stride) = (self.reach(axis), self.stride[axis].max(1));
        let total = match (length.known(), stride) {
            (_, 1) => reach - 1,
            (Some(n), _) => {
                let last = n.div_ceil(stride).saturating_sub(1).saturating_mul(stride);
                last.saturating_add(reach).saturating_sub(n)
            }
            (None, _) => {
                let what = format!("the padding of {length} by steps of {stride} is open");
                return Err(bad_argument(self.op, what, "give the padding in numbers"));
            }
        };
        Ok([total / 2, total - total / 2])
    }

    /// With padding for an image of these spatial lengths.
    fn over(self, lengths: &[Dim]) -> Result<window::Window> {
        let axes = self.size.len();
        let padding = match self.padding {
            Padding::Valid => SmallVec::from_elem([0, 0], axes),
            Padding::Same => {
                let each = lengths.iter().enumerate();
                each.map(|(axis, length)| self.same(axis, length)).collect::<Result<_>>()?
            }
            Padding::Of(given) => match &given[..] {
                [all] => SmallVec::from_elem(*all, axes),
                each if each.len() == axes => each.into(),
                each => {
                    let what = format!("a padding of {each:?} for {axes} spatial axes");
                    return Err(bad_argument(
                        self.op,
                        what,
                        "give a pair for all, or one for each",
                    ));
                }
            },
        };
        let Sliding { size, stride, dilation, .. } = self;
        Ok(window::Window { size, stride, padding, dilation })
    }
}

/// How filters are laid on an image: stride, padding, dilation, groups.
///
/// ```
/// use tonnage::Conv;
/// let halving = Conv::same().stride(2);
/// let grouped = Conv::valid().padding([[1, 1], [0, 2]]).dilation([2, 1]).groups(4);
/// # let _ = (halving, grouped);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conv {
    stride: PerAxis,
    padding: Padding,
    dilation: PerAxis,
    groups: usize,
    lengths: Option<PerAxis>,
}

impl Conv {
    /// Without padding: windows stay inside.
    pub fn valid() -> Conv {
        let (stride, dilation) = (1.into(), 1.into());
        Conv { stride, padding: Padding::Valid, dilation, groups: 1, lengths: None }
    }

    /// With as much padding as it takes for a result as long as the image, or as `length / stride`, rounded up.
    pub fn same() -> Conv {
        Conv { padding: Padding::Same, ..Conv::valid() }
    }

    /// From one window to the next.
    #[must_use]
    pub fn stride(self, stride: impl Into<PerAxis>) -> Conv {
        Conv { stride: stride.into(), ..self }
    }

    /// Zeros around the image.
    #[must_use]
    pub fn padding(self, padding: impl Into<Padding>) -> Conv {
        Conv { padding: padding.into(), ..self }
    }

    /// From one element of a window to the next.
    #[must_use]
    pub fn dilation(self, dilation: impl Into<PerAxis>) -> Conv {
        Conv { dilation: dilation.into(), ..self }
    }

    /// Channels are divided into `groups` groups, which have nothing to do with each other.
    #[must_use]
    pub fn groups(self, groups: usize) -> Conv {
        Conv { groups, ..self }
    }

    pub(crate) fn group_count(&self) -> usize {
        self.groups
    }

    /// The spatial lengths of what a transposed convolution gives, where a stride leaves them open. Without it: the
    /// shortest that are possible, or `length * stride` with [`Conv::same`].
    #[must_use]
    pub fn lengths(self, lengths: impl Into<PerAxis>) -> Conv {
        Conv { lengths: Some(lengths.into()), ..self }
    }

    fn sliding(&self, op: &'static str, size: Sizes) -> Result<Sliding<'_>> {
        let axes = size.len();
        let stride = self.stride.spread(op, axes, "stride")?;
        let dilation = self.dilation.spread(op, axes, "dilation")?;
        Ok(Sliding { op, size, stride, dilation, padding: &self.padding })
    }

    /// Over an image of these spatial lengths.
    pub(crate) fn over(
        &self,
        op: &'static str,
        size: Sizes,
        lengths: &[Dim],
    ) -> Result<window::Conv> {
        if self.lengths.is_some() {
            let what = "lengths of a result that the image decides";
            return Err(bad_argument(op, what, "leave them out: they are for the transpose"));
        }
        let window = self.sliding(op, size)?.over(lengths)?;
        Ok(window::Conv { window, groups: self.groups, image: Shape::scalar() })
    }

    /// To an image, from windows of these numbers along its spatial axes.
    pub(crate) fn to_image(
        &self,
        op: &'static str,
        size: Sizes,
        windows: &[Dim],
    ) -> Result<window::Conv> {
        let axes = size.len();
        let sliding = self.sliding(op, size)?;
        let image: Shape = match &self.lengths {
            Some(lengths) => Shape::from(&lengths.spread(op, axes, "length")?[..]),
            None => {
                let length = |axis: usize| {
                    let stride = Dim::Known(sliding.stride[axis]);
                    let pads = match sliding.padding {
                        Padding::Same => return windows[axis].times(&stride),
                        Padding::Valid => [0, 0],
                        Padding::Of(given) if given.len() == 1 => given[0],
                        Padding::Of(given) => given.get(axis).copied().unwrap_or_default(),
                    };
                    let steps = windows[axis].minus(&Dim::Known(1)).times(&stride);
                    let whole = steps.plus(&Dim::Known(sliding.reach(axis)));
                    whole.minus(&Dim::Known(pads[0].saturating_add(pads[1])))
                };
                (0..axes).map(length).collect()
            }
        };
        // Where a length is the number of windows times the stride, its padding does not depend on it.
        let known: SmallVec<[Dim; 3]> = match self.lengths {
            Some(_) => image.iter().cloned().collect(),
            None => sliding.stride.iter().map(|stride| Dim::Known(*stride)).collect(),
        };
        let window = sliding.over(&known)?;
        Ok(window::Conv { window, groups: self.groups, image })
    }
}

/// Windows to pool: their size, and from one to the next as far as they are long, unless [`Pool::stride`] says
/// otherwise.
///
/// ```
/// use tonnage::Pool;
/// let halves = Pool::of(2);
/// let overlapping = Pool::of([3, 3]).stride(2).padding(1);
/// # let _ = (halves, overlapping);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    size: PerAxis,
    stride: Option<PerAxis>,
    padding: Padding,
    dilation: PerAxis,
    counts_padding: bool,
}

impl Pool {
    /// Windows of that size, without padding.
    pub fn of(size: impl Into<PerAxis>) -> Pool {
        let (padding, dilation) = (Padding::Valid, 1.into());
        Pool { size: size.into(), stride: None, padding, dilation, counts_padding: false }
    }

    /// From one window to the next.
    #[must_use]
    pub fn stride(self, stride: impl Into<PerAxis>) -> Pool {
        Pool { stride: Some(stride.into()), ..self }
    }

    /// How far windows may stand out.
    #[must_use]
    pub fn padding(self, padding: impl Into<Padding>) -> Pool {
        Pool { padding: padding.into(), ..self }
    }

    /// From one element of a window to the next.
    #[must_use]
    pub fn dilation(self, dilation: impl Into<PerAxis>) -> Pool {
        Pool { dilation: dilation.into(), ..self }
    }

    /// For means: padding counts as zeros, rather than being left out.
    #[must_use]
    pub fn count_padding(self) -> Pool {
        Pool { counts_padding: true, ..self }
    }

    pub(crate) fn counts_padding(&self) -> bool {
        self.counts_padding
    }

    /// Over an image of these spatial lengths.
    pub(crate) fn over(&self, op: &'static str, lengths: &[Dim]) -> Result<window::Window> {
        let axes = lengths.len();
        let size = self.size.spread(op, axes, "size")?;
        let stride = match &self.stride {
            Some(stride) => stride.spread(op, axes, "stride")?,
            None => size.clone(),
        };
        let dilation = self.dilation.spread(op, axes, "dilation")?;
        Sliding { op, size, stride, dilation, padding: &self.padding }.over(lengths)
    }
}
