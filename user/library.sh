# How the libraries for C programs are built and installed; read by their build.sh, which run in the project's folder.
# What is built lies in target/user.
target=${CARGO_TARGET_DIR:-target}

# build CRATE FEATURE LIBRARY: LIBRARY.a and LIBRARY.so.
build() {
    # Libraries of one crate differ by feature, and cargo names what it builds by the crate: each has a folder of its own, so that
    # builds at the same time do not copy each other's.
    # Words in .init_array run before main, and no symbol refers to them: one object file, so that whoever uses anything of the
    # library also gets those.
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_PROFILE_RELEASE_LTO=fat \
        cargo rustc --quiet --release -p "$1" --features "$2" --crate-type staticlib,cdylib --target-dir "$target/$3"
    mkdir -p "$target/user"
    for ending in a so; do
        cp "$target/$3/release/lib$1.$ending" "$target/user/$3.$ending.$$"
        mv "$target/user/$3.$ending.$$" "$target/user/$3.$ending"
    done
}

# install_to PREFIX FOLDER LIBRARY...: also the headers and man pages of user/FOLDER.
install_to() {
    prefix=$1 folder=$2
    shift 2
    install -d "$prefix/lib" "$prefix/include" "$prefix/share/man/man3"
    for library; do
        install -m 644 "$target/user/$library.a" "$prefix/lib/"
        install -m 755 "$target/user/$library.so" "$prefix/lib/"
    done
    install -m 644 "user/$folder/include/"*.h "$prefix/include/"
    install -m 644 "user/$folder/man/"*.3 "$prefix/share/man/man3/"
}
