//! What elements are made in on their way to a file.

use tonnage_core::bytes::Bytes;

/// Bytes that a thread makes before it writes them: they stay in its cache.
pub const FILE_PIECE: usize = 1 << 18;

/// What a number of bytes are made in before they are written: a piece a thread, or less where there is less.
pub fn file_pieces(bytes: Bytes, threads: usize) -> Bytes {
    Bytes::of(file_piece(bytes) * threads.max(1))
}

/// Bytes of the piece that a thread makes at a time.
pub fn file_piece(bytes: Bytes) -> usize {
    bytes.rounded().as_usize().min(FILE_PIECE)
}
