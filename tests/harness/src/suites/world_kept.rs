//! `--upper`: what is changed on the host's root is there again in the next machine, and Linux's overlay sees the same in the folder.

use super::hostfiles::Bench;

/// The names and contents where the scripts change something; hosts and resolv.conf are the machine's own.
const STATE: &str = "cd $R; find etc opt/skel opt/closed srv usr/local/bin ! -type s ! -path etc/hosts ! -path etc/resolv.conf \
                     -printf '%p %y %m %l\\n' 2>/dev/null | sort; \
                     find opt/skel opt/closed srv etc/kept etc/skel etc/profile etc/issue etc/apt usr/local/bin/mine \
                     -type f 2>/dev/null | sort | xargs -r md5sum";
/// What is done in one machine after the other.
const RUNS: [&str; 3] = [
    "mkdir -p /etc/kept/a/b /srv/s; echo 1 > /etc/kept/a/b/c; ln -s b/c /etc/kept/a/l; ln /etc/kept/a/b/c /etc/kept/hard; \
     rm /etc/issue; echo x >> /etc/profile; chmod 600 /etc/issue.net /etc/profile; \
     mv /etc/skel /opt/skel; mkdir /etc/skel; echo n > /etc/skel/new; \
     rm -r /etc/apt; mkdir /etc/apt; echo only > /etc/apt/only; cp /bin/true /usr/local/bin/mine; touch -d @77 /srv/s/old; \
     mkdir -m 750 /opt/closed; head -c 300000 /dev/urandom > /opt/closed/many",
    "rm /etc/kept/a/b/c; rmdir /etc/kept/a/b; mkdir /etc/issue; echo again > /etc/issue/file; rm -r /etc/skel; mv /opt/closed /srv/closed; \
     echo 2 > /etc/kept/hard; rm -r /etc/apt; mv /opt/skel/.profile /etc/kept/moved; : > /srv/s/old; chmod 711 /srv/s",
    "rm -r /etc/kept /srv/closed; rm -r /etc/issue; mkdir /etc/apt; touch /etc/apt/empty; mv /srv/s /etc/skel",
];
/// Whose things are is kept, too; Linux's overlay shows the user's who runs the tool.
const MAKE_OWNERS: &str = "mkdir -p /var/kept/closed; echo 1 > /var/kept/f; chown 1234:5 /var/kept/f; cp /bin/true /var/kept/set; \
                           chmod 4755 /var/kept/set; chmod 500 /var/kept/closed";
const LOOK_AT_OWNERS: &str = "stat -c '%u %g %a %n' /var/kept/*; chown 7 /var/kept/closed";
const OWNERS: &str = "0 0 500 /var/kept/closed\n1234 5 644 /var/kept/f\n0 0 4755 /var/kept/set\n";
/// The folder as Linux's overlay shows it, where it may be mounted.
const AS_ON_LINUX: &str = "mkdir m w; unshare -m sh -c 'mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w,userxattr m \
                           2>/dev/null && R=$PWD/m && eval \"$STATE\"'; rm -r m w";

/// Runs one machine after the other with the same folder.
///
/// # Errors
/// What differs.
pub fn what_is_kept(bench: &Bench, name: &str) -> Result<(), String> {
    let folder = bench.fresh(name, "machine")?;
    let run = |script: &str| bench.run_hosted(&folder, &["--upper", "u"], script);
    let mut left = None;
    run(MAKE_OWNERS)?;
    for script in RUNS {
        let outcome = run(&format!(
            "R=/; before() {{ {STATE}; }}; before > /tmp/before; {script}; sync; cat /tmp/before; echo; echo ====; before"
        ))?;
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let (before, after) = text.split_once("\n====\n").ok_or_else(|| format!("{outcome:?}"))?;
        if outcome.status != 0 || !outcome.stderr.is_empty() {
            return Err(format!("{outcome:?}"));
        }
        same("the next machine", left.as_deref(), before)?;
        left = Some(after.to_string());
        let linux = bench.run_host(&folder, &format!("STATE={}; export STATE; {AS_ON_LINUX}", quoted(STATE)))?;
        let linux = String::from_utf8_lossy(&linux.stdout).into_owned();
        same("Linux's overlay", left.as_deref().filter(|_| !linux.is_empty()), &linux)?;
    }
    let owners = run(LOOK_AT_OWNERS)?;
    if owners.stdout != OWNERS.as_bytes() {
        return Err(format!("not these owners: {owners:?}"));
    }
    let refused = bench.run_hosted(&folder, &["--upper", "/etc/passwd"], "true")?;
    if refused.status != 0 { Ok(()) } else { Err(format!("{refused:?}")) }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn same(who: &str, wanted: Option<&str>, found: &str) -> Result<(), String> {
    let Some(wanted) = wanted else { return Ok(()) };
    let lines = |text: &str| text.lines().map(str::to_string).collect::<std::collections::BTreeSet<_>>();
    let (wanted, found) = (lines(wanted.trim_end()), lines(found.trim_end()));
    let differing: Vec<_> = wanted.symmetric_difference(&found).take(6).collect();
    if differing.is_empty() { Ok(()) } else { Err(format!("{who} sees other names or contents: {differing:?}")) }
}
