//! A stand-in for `synth run` that runs the program on this host, in the packed root: it tests the tests.
//!
//! It needs root, for chroot(8). What fails here is a mistake of a test, not of the kernel.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Arguments: root, folder, program and its arguments. The root is copied: a boot changes nothing.
const SCRIPT: &str = r#"
root=$0; cwd=$1; shift
new=$(mktemp -d) && mount -t tmpfs none "$new" && { [ "$root" = / ] || cp -a "$root/." "$new"; } || exit 71
[ "$root" = / ] && new=/ || { mount --rbind /dev "$new/dev"; mount -t proc proc "$new/proc"; }
exec chroot "$new" /bin/busybox sh -c 'cd "$0" 2>/dev/null; exec "$@"' "$cwd" "$@"
"#;

/// Takes the options of `synth run` that the suites use.
pub fn main(args: &[String]) -> ExitCode {
    let mut root = String::from("/");
    let mut cwd = String::from("/");
    let mut command_env: Vec<String> = Vec::new();
    let mut words = args.iter().peekable();
    while let Some(word) = words.next_if(|word| word.starts_with("--")) {
        let value = words.next().cloned().unwrap_or_default();
        match word.as_str() {
            "--root" => root = value,
            "--cwd" => cwd = value,
            "--env" => command_env.push(value),
            _ => {}
        }
    }
    let rest: Vec<&String> = words.collect();
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", SCRIPT, &root, &cwd]);
    command.args(["/bin/busybox", "env", "-i"]).args(command_env).args(rest);
    command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    // The shell takes this process's place: signals and the terminal then reach the program as they should.
    let error = command.exec();
    eprintln!("error: {error}");
    ExitCode::from(127)
}
