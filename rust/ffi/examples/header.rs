//! Prints `clients/c/dpnoise.h`.

fn main() {
    let root = env!("CARGO_MANIFEST_DIR");
    let config = cbindgen::Config::from_root_or_default(root);
    let header = cbindgen::Builder::new().with_config(config).with_crate(root).generate().expect("a header");
    let mut text = vec![];
    header.write(&mut text);
    // Rust's heading for what callers promise is Doxygen's @pre.
    print!("{}", String::from_utf8(text).expect("UTF-8").replace(" * # Safety\n * ", " * @pre "));
}
