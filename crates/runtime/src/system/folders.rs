//! Where caches of this user go.

use std::path::PathBuf;

/// The folder of what is kept for later processes, by the rules of the system; nothing where there is none.
pub fn cache_folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    // A relative path there is to be ignored, says the standard that the name is of.
    let caches = of("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let caches = caches.or_else(|| match () {
        () if cfg!(windows) => of("LOCALAPPDATA"),
        () if cfg!(target_os = "macos") => of("HOME").map(|home| home.join("Library/Caches")),
        () => of("HOME").map(|home| home.join(".cache")),
    });
    caches.map(|caches| caches.join("tonnage"))
}
