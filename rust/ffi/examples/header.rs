//! Prints `clients/c/dpnoise.h`.

fn main() {
    let root = env!("CARGO_MANIFEST_DIR");
    let config = cbindgen::Config::from_root_or_default(root);
    let header = cbindgen::Builder::new().with_config(config).with_crate(root).generate().expect("a header");
    header.write(std::io::stdout());
}
