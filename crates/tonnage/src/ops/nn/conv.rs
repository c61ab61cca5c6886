//! Convolutions, channels last: images are `[batch, ..., channels]`, filters `[..., channels in, channels out]`.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, bad_argument};
use tonnage_core::{Dim, OpDef, Result, Shape, Sizes, Source, window};
use tonnage_ops::{nn, shape};

use crate::dispatch::apply1;
use crate::tensor::Tensor;
use crate::window::Conv;

/// What a call lays its filters by: sizes of the filters and spatial lengths of the image or of the windows.
type Lay = fn(&Conv, &'static str, Sizes, &[Dim]) -> Result<window::Conv>;

impl Tensor {
    /// Filters `[width, in, out]` laid on every window of `[batch, width, in]`.
    #[track_caller]
    pub fn conv1d(&self, filter: &Tensor, how: &Conv) -> Result<Tensor> {
        self.convolve(&nn::conv::forward::CONV, "conv1d", 1, filter, how, Conv::over)
    }

    /// Filters `[height, width, in, out]` laid on every window of an image `[batch, height, width, in]`. With
    /// [groups](Conv::groups), `in` of the filters is that of one group.
    ///
    /// The windows are never copied together: the matrix product that this is reads them where they lie.
    ///
    /// ```
    /// use tonnage::{Conv, tensor};
    /// let image = tensor([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]])?.reshape(&[1, 2, 3, 1])?;
    /// let filter = tensor([[1.0f32, -1.0]])?.reshape(&[1, 2, 1, 1])?;
    /// let slopes = image.conv2d(&filter, &Conv::valid())?;
    /// assert_eq!(slopes.shape().to_string(), "[1, 2, 2, 1]");
    /// assert_eq!(slopes.to_vec::<f32>()?, [-1.0; 4]);
    /// let halved = image.conv2d(&filter, &Conv::same().stride(2))?;
    /// assert_eq!(halved.to_vec::<f32>()?, [-1.0, 3.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn conv2d(&self, filter: &Tensor, how: &Conv) -> Result<Tensor> {
        self.convolve(&nn::conv::forward::CONV, "conv2d", 2, filter, how, Conv::over)
    }

    /// Filters `[depth, height, width, in, out]` laid on every window of `[batch, depth, height, width, in]`.
    #[track_caller]
    pub fn conv3d(&self, filter: &Tensor, how: &Conv) -> Result<Tensor> {
        self.convolve(&nn::conv::forward::CONV, "conv3d", 3, filter, how, Conv::over)
    }

    /// The transpose of [`conv1d`](Tensor::conv1d): values `[batch, width, out]` to `[batch, width, in]`.
    #[track_caller]
    pub fn conv1d_transpose(&self, filter: &Tensor, how: &Conv) -> Result<Tensor> {
        let op = &nn::conv::transpose::CONV_TRANSPOSE;
        self.convolve(op, "conv1d_transpose", 1, filter, how, Conv::to_image)
    }

    /// The transpose of [`conv2d`](Tensor::conv2d): values `[batch, height, width, out]`, by the same filters, to an image
    /// `[batch, height, width, in]`, which grows by the stride.
    ///
    /// ```
    /// use tonnage::{Conv, ones};
    /// let values = ones([1, 4, 4, 3])?;
    /// let filter = ones([3, 3, 8, 3])?;
    /// let doubled = values.conv2d_transpose(&filter, &Conv::same().stride(2))?;
    /// assert_eq!(doubled.shape().to_string(), "[1, 8, 8, 8]");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn conv2d_transpose(&self, filter: &Tensor, how: &Conv) -> Result<Tensor> {
        let op = &nn::conv::transpose::CONV_TRANSPOSE;
        self.convolve(op, "conv2d_transpose", 2, filter, how, Conv::to_image)
    }

    /// The transpose of [`conv3d`](Tensor::conv3d).
    #[track_caller]
    pub fn conv3d_transpose(&self, filter: &Tensor, how: &Conv) -> Result<Tensor> {
        let op = &nn::conv::transpose::CONV_TRANSPOSE;
        self.convolve(op, "conv3d_transpose", 3, filter, how, Conv::to_image)
    }

    /// Each channel of an image `[batch, height, width, in]` by filters of its own, `[height, width, in, times]`, to
    /// `in * times` channels.
    #[track_caller]
    pub fn depthwise_conv2d(&self, filter: &Tensor, how: &Conv) -> Result<Tensor> {
        let (op, source) = ("depthwise_conv2d", Source::here());
        let [height, width, inputs, times] = &filter.shape()[..] else {
            let expected = "4 ([height, width, in, times])".into();
            let kind = ErrorKind::RankMismatch { op, shape: filter.shape(), expected };
            return Err(tonnage_core::Error::from(kind).at(source));
        };
        let Some(groups) = inputs.known() else {
            let what = format!("filters for {inputs} channels");
            return Err(bad_argument(op, what, "fix the number in the signature").at(source));
        };
        let to: Shape = [height.clone(), width.clone(), Dim::Known(1), inputs.times(times)]
            .into_iter()
            .collect();
        let row = &shape::reshape::RESHAPE;
        let filter = apply1(row, smallvec![filter.into()], Attrs::Shape(to), source)?;
        let how = how.clone().groups(groups);
        self.convolve(&nn::conv::forward::CONV, op, 2, &filter, &how, Conv::over)
    }

    #[track_caller]
    fn convolve(
        &self,
        op: &'static OpDef,
        name: &'static str,
        axes: usize,
        filter: &Tensor,
        how: &Conv,
        lay: Lay,
    ) -> Result<Tensor> {
        let source = Source::here();
        let attrs = || -> Result<Attrs> {
            let (image, filters) = (self.shape(), filter.shape());
            for shape in [&image, &filters] {
                if shape.rank() != axes + 2 {
                    let spatial = ["width", "height, width", "depth, height, width"][axes - 1];
                    let expected = format!(
                        "{} (images [batch, {spatial}, in], filters [{spatial}, in, out])",
                        axes + 2
                    );
                    let shape = shape.clone();
                    return Err(ErrorKind::RankMismatch { op: name, shape, expected }.into());
                }
            }
            let Some(size) = filters[..axes].iter().map(Dim::known).collect::<Option<Sizes>>()
            else {
                let what = format!("filters of the open shape {filters}");
                return Err(bad_argument(name, what, "fix their lengths in the signature"));
            };
            Ok(Attrs::Conv(Box::new(lay(how, name, size, &image[1..axes + 1])?)))
        };
        let attrs = attrs().map_err(|e| e.at(source))?;
        apply1(op, smallvec![self.into(), filter.into()], attrs, source)
    }
}
