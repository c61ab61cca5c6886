//! Products of matrices by cuBLASLt. The algorithm of a product is chosen once, for its sizes and alignments.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use cudarc::cublaslt::sys::{
    self, cublasComputeType_t as Compute, cublasLtMatmulDescAttributes_t as DescAttribute,
    cublasLtMatmulPreferenceAttributes_t as Preference,
    cublasLtMatrixLayoutAttribute_t as LayoutAttribute, cudaDataType as DataType,
};
use tonnage_core::error::Result;
use tonnage_core::{Bytes, DType};

use super::{Gpu, library};

use crate::product::{Matrix, Product, WORKSPACE_ALIGN};

/// The library, and the products that it was asked for.
#[derive(Default)]
pub struct Products(Mutex<Option<Library>>);

struct Library {
    handle: sys::cublasLtHandle_t,
    /// By the product, the alignments of operands and result, and the workspace.
    chosen: HashMap<Choice, Chosen>,
}

/// What decides how a product is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Choice {
    product: Product,
    has_bias: bool,
    /// Alignments of the operands, of the result, and of what is added to it.
    aligned: [u32; 4],
    /// Bytes of workspace.
    workspace: usize,
    /// Which of the library's algorithms, the best first as far as it knows.
    number: usize,
}

/// Where a product finds what it needs.
#[derive(Debug, Clone, Copy)]
pub struct ProductAddresses {
    /// Of the left operand.
    pub left: u64,
    /// Of the right operand.
    pub right: u64,
    /// Of what is added to each row, if there is anything.
    pub bias: Option<u64>,
    /// Of what is added to each element.
    pub added: Option<u64>,
    /// Of the result.
    pub out: u64,
    /// Of the workspace, if there is one.
    pub workspace: Option<u64>,
}

/// How a product is computed. The library's objects live as long as the process does.
#[derive(Clone, Copy)]
struct Chosen {
    desc: sys::cublasLtMatmulDesc_t,
    right: sys::cublasLtMatrixLayout_t,
    left: sys::cublasLtMatrixLayout_t,
    out: sys::cublasLtMatrixLayout_t,
    algorithm: sys::cublasLtMatmulAlgo_t,
}

fn said(status: sys::cublasStatus_t) -> std::result::Result<(), String> {
    match status {
        sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        other => Err(format!("cuBLASLt: {other:?}")),
    }
}

impl Library {
    fn new() -> std::result::Result<Library, String> {
        library::find_products()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the library is there and a context is current; the handle is written.
        said(unsafe { sys::cublasLtCreate(&mut handle) })?;
        Ok(Library { handle, chosen: HashMap::new() })
    }

    /// How a product is computed; nothing where the library knows fewer algorithms.
    fn choose(&mut self, choice: Choice) -> std::result::Result<Option<Chosen>, String> {
        if let Some(chosen) = self.chosen.get(&choice) {
            return Ok(Some(*chosen));
        }
        let Choice { product, has_bias, aligned, workspace, number } = choice;
        let (data, compute, scale) = match product.dtype {
            DType::F64 => (DataType::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F, DataType::CUDA_R_64F),
            DType::F16 => (DataType::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F, DataType::CUDA_R_32F),
            DType::BF16 => {
                (DataType::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F, DataType::CUDA_R_32F)
            }
            _ => (DataType::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F, DataType::CUDA_R_32F),
        };
        let mut desc = ptr::null_mut();
        // SAFETY: the object is written.
        said(unsafe { sys::cublasLtMatmulDescCreate(&mut desc, compute, scale) })?;
        // The library takes matrices by columns. Our result by rows is its transpose by columns: the right operand comes first, and an operand
        // by rows is already the transpose that is wanted.
        let Product { rows, cols, depth, batch, left, right, lead, .. } = product;
        for (attribute, matrix) in [
            (DescAttribute::CUBLASLT_MATMUL_DESC_TRANSA, right),
            (DescAttribute::CUBLASLT_MATMUL_DESC_TRANSB, left),
        ] {
            let transposed = i32::from(matrix.by_columns);
            // SAFETY: the attribute is a number of 32 bits.
            said(unsafe {
                sys::cublasLtMatmulDescSetAttribute(
                    desc,
                    attribute,
                    ptr::from_ref(&transposed).cast(),
                    4,
                )
            })?;
        }
        if has_bias {
            let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
            // SAFETY: the attribute is a number of 32 bits.
            said(unsafe {
                sys::cublasLtMatmulDescSetAttribute(
                    desc,
                    DescAttribute::CUBLASLT_MATMUL_DESC_EPILOGUE,
                    ptr::from_ref(&epilogue).cast(),
                    4,
                )
            })?;
        }
        let layout = |(rows, cols): (u64, u64), matrix: Matrix| {
            let mut layout = ptr::null_mut();
            // SAFETY: the object is written.
            said(unsafe {
                sys::cublasLtMatrixLayoutCreate(&mut layout, data, rows, cols, matrix.lead)
            })?;
            let count = i32::try_from(batch)
                .map_err(|_| "a batch of more than 2^31 products".to_string())?;
            // SAFETY: the attribute is a number of 32 bits.
            said(unsafe {
                sys::cublasLtMatrixLayoutSetAttribute(
                    layout,
                    LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                    ptr::from_ref(&count).cast(),
                    4,
                )
            })?;
            // SAFETY: the attribute is a number of 64 bits.
            said(unsafe {
                sys::cublasLtMatrixLayoutSetAttribute(
                    layout,
                    LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                    ptr::from_ref(&matrix.batch).cast(),
                    8,
                )
            })?;
            Ok::<_, String>(layout)
        };
        let by = |matrix: Matrix, rows: u64, cols: u64| match matrix.by_columns {
            true => (rows, cols),
            false => (cols, rows),
        };
        let out = Matrix { by_columns: false, lead: lead as i64, batch: (rows * lead) as i64 };
        let (right_layout, left_layout, out_layout) = (
            layout(by(right, depth, cols), right)?,
            layout(by(left, rows, depth), left)?,
            layout((cols, rows), out)?,
        );
        let mut preference = ptr::null_mut();
        // SAFETY: the object is written.
        said(unsafe { sys::cublasLtMatmulPreferenceCreate(&mut preference) })?;
        // SAFETY: the attribute is a number of 64 bits.
        said(unsafe {
            sys::cublasLtMatmulPreferenceSetAttribute(
                preference,
                Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                ptr::from_ref(&workspace).cast(),
                8,
            )
        })?;
        let alignments = [
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned[1]),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned[0]),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned[3]),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned[2]),
        ];
        for (attribute, bytes) in alignments {
            // SAFETY: the attribute is a number of 32 bits.
            said(unsafe {
                sys::cublasLtMatmulPreferenceSetAttribute(
                    preference,
                    attribute,
                    ptr::from_ref(&bytes).cast(),
                    4,
                )
            })?;
        }
        let asked = i32::try_from(number + 1).map_err(|e| e.to_string())?;
        let mut found = vec![std::mem::MaybeUninit::uninit(); number + 1];
        let mut count = 0;
        // SAFETY: objects that were just made; as many results are written as are found, and there is room for all that are asked for.
        said(unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                desc,
                right_layout,
                left_layout,
                out_layout,
                out_layout,
                preference,
                asked,
                found.as_mut_ptr().cast(),
                &mut count,
            )
        })?;
        // SAFETY: the preference is not used from here on.
        let _ = unsafe { sys::cublasLtMatmulPreferenceDestroy(preference) };
        if count == 0 {
            return Err(format!("cuBLASLt has no algorithm for {product:?}"));
        }
        if count < asked {
            return Ok(None);
        }
        // SAFETY: as many were found as were asked for, so the last was written.
        let found: sys::cublasLtMatmulHeuristicResult_t = unsafe { found[number].assume_init() };
        let chosen = Chosen {
            desc,
            right: right_layout,
            left: left_layout,
            out: out_layout,
            algorithm: found.algo,
        };
        self.chosen.insert(choice, chosen);
        Ok(Some(chosen))
    }
}

/// The alignment of an address, as far as it matters.
fn alignment(address: u64) -> u32 {
    1 << address.trailing_zeros().min(8)
}

impl Gpu {
    /// Launches a product.
    ///
    /// # Errors
    /// Where the library is not there, or fails.
    pub fn multiply(&self, product: &Product, at: ProductAddresses) -> Result<()> {
        let space = if at.workspace.is_some() { product.space() } else { Bytes::ZERO };
        self.multiply_by(product, at, 0, space).map(|_| ())
    }

    /// The same by the library's algorithm of that number, in so many bytes of workspace; false where it knows fewer. Programs have
    /// the first, which depends on nothing but the product and the library: this is for measurements.
    ///
    /// # Errors
    /// Where the library is not there, or fails.
    pub fn multiply_by(
        &self,
        product: &Product,
        at: ProductAddresses,
        number: usize,
        space: Bytes,
    ) -> Result<bool> {
        let ProductAddresses { left, right, bias, added, out, workspace } = at;
        if product.rows == 0 || product.cols == 0 || product.batch == 0 {
            return Ok(true);
        }
        if product.depth == 0 {
            let before = (product.rows * product.batch - 1) * product.lead;
            let bytes = (before + product.cols) * product.dtype.size() as u64;
            return self.fill(out as usize, bytes as usize, 0).map(|()| true);
        }
        self.enter()?;
        let mut held = self.products.0.lock().unwrap_or_else(PoisonError::into_inner);
        let library = match &mut *held {
            Some(library) => library,
            empty => empty.insert(Library::new().map_err(|what| self.failed(what))?),
        };
        let workspace = workspace.map(|at| at.next_multiple_of(WORKSPACE_ALIGN));
        let choice = Choice {
            product: *product,
            has_bias: bias.is_some(),
            aligned: [left, right, out, added.unwrap_or(out)].map(alignment),
            workspace: space.as_usize(),
            number,
        };
        let Some(chosen) = library.choose(choice).map_err(|what| self.failed(what))? else {
            return Ok(false);
        };
        if let Some(bias) = bias {
            // SAFETY: the attribute is an address of the device.
            let status = unsafe {
                sys::cublasLtMatmulDescSetAttribute(
                    chosen.desc,
                    DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                    ptr::from_ref(&bias).cast(),
                    8,
                )
            };
            said(status).map_err(|what| self.failed(what))?;
        }
        let (single, double) = ([1f32, 0.0], [1f64, 0.0]);
        let (one, zero): (*const c_void, *const c_void) = match product.dtype {
            DType::F64 => (ptr::from_ref(&double[0]).cast(), ptr::from_ref(&double[1]).cast()),
            _ => (ptr::from_ref(&single[0]).cast(), ptr::from_ref(&single[1]).cast()),
        };
        let share = if added.is_some() { one } else { zero };
        let address = |at: u64| ptr::without_provenance_mut::<c_void>(at as usize);
        // SAFETY: objects of this library for these sizes, addresses of the device, and factors that live until the call returns.
        let status = unsafe {
            sys::cublasLtMatmul(
                library.handle,
                chosen.desc,
                one,
                address(right),
                chosen.right,
                address(left),
                chosen.left,
                share,
                address(added.unwrap_or(out)),
                chosen.out,
                address(out),
                chosen.out,
                &chosen.algorithm,
                address(workspace.unwrap_or(0)),
                space.as_usize(),
                self.stream().cast(),
            )
        };
        said(status).map_err(|what| self.failed(what)).map(|()| true)
    }
}
