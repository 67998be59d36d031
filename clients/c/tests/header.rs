//! The header for C, which is made from the sources.

use std::env;
use std::fs;
use std::path::Path;

#[test]
fn the_header_is_what_the_sources_say() {
    let root = env!("CARGO_MANIFEST_DIR");
    let config = cbindgen::Config::from_root_or_default(root);
    let made = cbindgen::Builder::new().with_config(config).with_crate(root).generate().unwrap();
    let mut text = vec![];
    made.write(&mut text);
    // Rust's heading for what callers promise is Doxygen's @pre.
    let text = String::from_utf8(text).unwrap().replace(" * # Safety\n * ", " * @pre ");

    let header = Path::new(root).join("dpnoise.h");
    if env::var_os("DPNOISE_WRITE_HEADER").is_some() {
        fs::write(&header, &text).unwrap();
    }
    assert!(fs::read_to_string(&header).unwrap() == text, "clients/c/dpnoise.h is of other sources: make header");
}
