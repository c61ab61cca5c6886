//! Kernels that were compiled, in files: the next process need not compile them again.
//!
//! A file is named after what it was compiled from, and holds that name, a length and a checksum before the code. It is written under another
//! name and then renamed, so another process sees all of it or nothing. A file that is cut or changed is compiled anew. Where no file can be
//! written, nothing is kept: the cache saves time, and an error of it is none of the program's.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What a file begins with.
const MAGIC: &[u8; 16] = b"tonnage kernel 1";

/// The most that all files take; the oldest go first.
const MOST: u64 = 64 << 20;

/// Files that a process left half written are removed after this.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Kernels in a folder.
#[derive(Debug, Clone, Default)]
pub struct KernelCache {
    folder: Option<PathBuf>,
    most: u64,
}

/// What a kernel was compiled from, as two numbers of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey([u64; 2]);

impl CacheKey {
    /// Of all that decides on the code.
    pub fn of(from: &(impl Hash + ?Sized)) -> CacheKey {
        CacheKey([1u8, 2].map(|which| {
            let mut hasher = DefaultHasher::new();
            (which, from).hash(&mut hasher);
            hasher.finish()
        }))
    }

    fn name(self) -> String {
        let [a, b] = self.0;
        format!("{a:016x}{b:016x}.cubin")
    }

    /// What stands before the code.
    fn head(self, code: &[u8]) -> Vec<u8> {
        let mut hasher = DefaultHasher::new();
        (self.0, code).hash(&mut hasher);
        let numbers = [self.0[0], self.0[1], code.len() as u64, hasher.finish()];
        let mut head = MAGIC.to_vec();
        numbers.iter().for_each(|number| head.extend(number.to_le_bytes()));
        head
    }
}

impl KernelCache {
    /// In a folder, which is made when something is kept; nowhere where there is none.
    pub fn new(folder: Option<PathBuf>) -> KernelCache {
        KernelCache { folder, most: MOST }
    }

    /// The code that is kept for a kernel.
    pub fn get(&self, key: CacheKey) -> Option<Vec<u8>> {
        let mut bytes = fs::read(self.folder.as_ref()?.join(key.name())).ok()?;
        let start = key.head(&[]).len();
        let code = bytes.split_off(start.min(bytes.len()));
        (bytes == key.head(&code)).then_some(code)
    }

    /// Keeps the code of a kernel.
    pub fn put(&self, key: CacheKey, code: &[u8]) {
        let Some(folder) = &self.folder else { return };
        // A full disk or a folder that is not ours: it is compiled again next time.
        if write(folder, key, code).is_ok() {
            self.shrink(folder);
        }
    }

    /// Removes the oldest files beyond the most that they may take, and what was left half written.
    fn shrink(&self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((about.modified().ok()?, about.len(), entry.path()))
            })
            .collect();
        let ends = |path: &Path, ending: &str| path.extension().is_some_and(|e| e == ending);
        let now = SystemTime::now();
        for (written, _, path) in files.iter().filter(|(_, _, path)| ends(path, "part")) {
            if now.duration_since(*written).is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(path);
            }
        }
        files.retain(|(_, _, path)| ends(path, "cubin"));
        files.sort();
        let mut all: u64 = files.iter().map(|(_, len, _)| len).sum();
        for (_, len, path) in files {
            if all <= self.most {
                break;
            }
            let _ = fs::remove_file(path);
            all -= len;
        }
    }
}

fn write(folder: &Path, key: CacheKey, code: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let part = folder.join(format!("{}.{}.part", key.name(), std::process::id()));
    let written = fs::File::create(&part).and_then(|mut file| {
        file.write_all(&key.head(code))?;
        file.write_all(code)?;
        fs::rename(&part, folder.join(key.name()))
    });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tonnage-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }

        fn cache(&self) -> KernelCache {
            KernelCache::new(Some(self.0.join("kernels")))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_kept_comes_back_and_nothing_else() {
        let folder = Folder::new("kept");
        let (cache, key) = (folder.cache(), CacheKey::of("text"));
        assert_eq!(cache.get(key), None);
        cache.put(key, b"code");
        assert_eq!(cache.get(key).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.get(CacheKey::of("another text")), None);
        // Under another name it is not taken for what it is not.
        let names =
            [key, CacheKey::of("moved")].map(|key| folder.0.join("kernels").join(key.name()));
        fs::rename(&names[0], &names[1]).unwrap();
        assert_eq!(cache.get(CacheKey::of("moved")), None);
        KernelCache::default().put(key, b"code");
        assert_eq!(KernelCache::default().get(key), None);
    }

    #[test]
    fn a_file_that_is_cut_or_changed_at_any_byte_is_none() {
        let folder = Folder::new("damaged");
        let (cache, key) = (folder.cache(), CacheKey::of("text"));
        cache.put(key, b"some code");
        let path = folder.0.join("kernels").join(key.name());
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(cache.get(key), None, "cut at {at}");
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert_eq!(cache.get(key), None, "changed at {at}");
        }
        // It is written anew.
        cache.put(key, b"some code");
        assert_eq!(cache.get(key).as_deref(), Some(&b"some code"[..]));
    }

    #[test]
    fn files_take_no_more_than_they_may() {
        let folder = Folder::new("bounded");
        let cache = KernelCache { most: 1000, ..folder.cache() };
        for i in 0..20 {
            cache.put(CacheKey::of(&i), &[i; 200]);
        }
        let files = fs::read_dir(folder.0.join("kernels")).unwrap();
        let all: u64 = files.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        assert!(all <= 1000, "{all}");
        assert!((0..20u8).any(|i| cache.get(CacheKey::of(&i)).is_some()));
    }

    #[test]
    fn processes_that_write_the_same_kernel_leave_a_whole_one() {
        let folder = Folder::new("shared");
        let (cache, key) = (folder.cache(), CacheKey::of("text"));
        let code = vec![7u8; 100_000];
        std::thread::scope(|scope| {
            scope.spawn(|| (0..50).for_each(|_| cache.put(key, &code)));
            scope.spawn(|| {
                for _ in 0..200 {
                    assert!(cache.get(key).is_none_or(|found| found == code));
                }
            });
        });
        assert_eq!(cache.get(key), Some(code));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let folder = Folder::new("file");
        fs::write(&folder.0, b"no folder").unwrap();
        let cache = folder.cache();
        cache.put(CacheKey::of("text"), b"code");
        assert_eq!(cache.get(CacheKey::of("text")), None);
        fs::remove_file(&folder.0).unwrap();
    }
}
