//! `--user NAME|UID[:GROUP|GID]`, by the guest's own lists.

use bootimage::Node;
use std::path::Path;

use super::program;
use super::tree::Tree;
use crate::failure::{Failure, TOOL};
use crate::options::FileOptions;

/// Lists of users are no longer than this.
const LIST_BYTES_MAX: usize = 8 << 20;

/// For whom the first program runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct User {
    pub id: u32,
    pub group: u32,
    pub groups: Vec<u32>,
    pub home: Option<String>,
}

impl User {
    /// Their home is where they live, unless another was said.
    pub fn live_in(&self, env: &mut Vec<Vec<u8>>, files: &FileOptions) {
        let is_said = files.env.iter().any(|option| option.to_string_lossy().split('=').next() == Some("HOME"));
        if !is_said && let Some(home) = &self.home {
            env.retain(|entry| !entry.starts_with(b"HOME="));
            env.push(format!("HOME={home}").into_bytes());
        }
    }
}

/// The guest's lists.
pub struct Lists {
    pub users: String,
    pub groups: String,
}

impl Lists {
    /// Those that have been packed.
    pub fn of(tree: &Tree) -> Lists {
        let text = |path: &str| match tree.find(Path::new(path)) {
            Some((_, _, Node::File { bytes, source })) => program::read_start(source, *bytes, LIST_BYTES_MAX),
            _ => Vec::new(),
        };
        let words = |path| String::from_utf8_lossy(&text(path)).into_owned();
        Lists { users: words("/etc/passwd"), groups: words("/etc/group") }
    }

    /// The host's.
    pub fn of_host() -> Lists {
        let text =
            |path| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        Lists { users: text("/etc/passwd"), groups: text("/etc/group") }
    }

    /// Who is meant.
    pub fn find(&self, wanted: &str) -> Result<User, Failure> {
        let failed = |what: &str, name: &str| {
            Failure::new(
                TOOL,
                format!("--user {wanted}: there is no {what} {name} in the guest"),
                "name one, or give a number",
            )
        };
        let (name, group) = wanted.split_once(':').map_or((wanted, None), |(name, group)| (name, Some(group)));
        let line =
            lines(&self.users).find(|fields| fields[0] == name || is_number(name) && fields.get(2) == Some(&name));
        let field = |index: usize| line.as_ref().and_then(|fields| fields.get(index)?.parse::<u32>().ok());
        let id = match name.parse() {
            Ok(id) => id,
            Err(_) => field(2).ok_or_else(|| failed("user", name))?,
        };
        let home = line
            .as_ref()
            .and_then(|fields| fields.get(5))
            .filter(|home| home.starts_with('/'))
            .map(|home| home.to_string());
        let given = group.map(|group| self.group(group).ok_or_else(|| failed("group", group))).transpose()?;
        let is_member = |fields: &[&str]| {
            let members = fields.get(3).copied().unwrap_or_default();
            line.as_ref().is_some_and(|user| members.split(',').any(|member| member == user[0]))
        };
        let groups = lines(&self.groups).filter(|fields| given.is_none() && is_member(fields));
        let groups = groups.filter_map(|fields| fields.get(2)?.parse().ok()).collect();
        Ok(User { id, group: given.or(field(3)).unwrap_or(0), groups, home })
    }

    fn group(&self, wanted: &str) -> Option<u32> {
        let by_name = || lines(&self.groups).find(|fields| fields[0] == wanted)?.get(2)?.parse().ok();
        wanted.parse().ok().or_else(by_name)
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> Lists {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100:Ann:/home/ann:/bin/sh\n".into();
        Lists { users, groups: "users:x:100:\nsudo:x:27:ann,bob\n".into() }
    }

    #[test]
    fn names_and_numbers_are_found_with_their_groups() {
        let ann = User { id: 1000, group: 100, groups: vec![27], home: Some("/home/ann".into()) };
        assert_eq!(lists().find("ann").unwrap(), ann);
        assert_eq!(lists().find("1000").unwrap(), ann);
        assert_eq!(lists().find("ann:sudo").unwrap(), User { group: 27, groups: vec![], ..ann.clone() });
        assert_eq!(lists().find("7:8").unwrap(), User { id: 7, group: 8, ..User::default() });
        assert_eq!(lists().find("7").unwrap(), User { id: 7, ..User::default() });
    }

    #[test]
    fn who_is_not_there_is_told() {
        for wanted in ["nobody-here", "ann:no-group", "", ":", "-1"] {
            assert!(lists().find(wanted).is_err(), "{wanted}");
        }
    }
}
