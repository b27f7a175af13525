//! The client against a server that answers rightly, says no, is silent, and lies.

use std::cell::{Cell, RefCell};

use ninep::{Change, Client, Facts, Failure, Fid, LockKind, LockRecord, Qid, Sheet, Space, TimeWish, Walked, Wire};

const ROOM: usize = 8192;
const TAG: u16 = 0x1234;

/// What the server does with a question: the answer's bytes, or nothing.
type Serve = Box<dyn Fn(&[u8]) -> Option<Vec<u8>>>;

struct Server {
    serve: Serve,
    asked: RefCell<Vec<u8>>,
    /// How many bytes the carrier says it has brought, if not as many as there are.
    came: Cell<Option<usize>>,
}

struct Paper<'a> {
    server: &'a Server,
    question: Vec<u8>,
    answer: Vec<u8>,
}

impl Wire for Server {
    type Sheet<'a> = Paper<'a>;

    fn sheet(&self) -> Result<Paper<'_>, Failure> {
        Ok(Paper { server: self, question: vec![0; ROOM], answer: vec![0xEE; ROOM] })
    }
}

impl Sheet for Paper<'_> {
    fn room(&self) -> usize {
        ROOM
    }

    fn tag(&self) -> u16 {
        TAG
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.question[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.answer[offset..offset + into.len()]);
    }

    fn exchange(&mut self, bytes: usize) -> Result<usize, Failure> {
        *self.server.asked.borrow_mut() = self.question[..bytes].to_vec();
        let answer = (self.server.serve)(&self.question[..bytes]).ok_or(Failure::GivenUp)?;
        let count = answer.len().min(ROOM);
        self.answer[..count].copy_from_slice(&answer[..count]);
        Ok(self.server.came.get().unwrap_or(answer.len()))
    }
}

fn client(serve: impl Fn(&[u8]) -> Option<Vec<u8>> + 'static) -> Client<Server> {
    Client { wire: Server { serve: Box::new(serve), asked: RefCell::default(), came: Cell::new(None) } }
}

fn answer(kind: u8, tag: u16, body: &[u8]) -> Vec<u8> {
    let mut out = (7 + body.len() as u32).to_le_bytes().to_vec();
    out.push(kind);
    out.extend(tag.to_le_bytes());
    out.extend(body);
    out
}

/// A server that gives this body, with the right kind and tag.
fn gives(body: &[u8]) -> Client<Server> {
    let body = body.to_vec();
    client(move |question| Some(answer(question[4] + 1, u16::from_le_bytes([question[5], question[6]]), &body)))
}

fn asked(client: &Client<Server>) -> (u8, Vec<u8>) {
    let question = client.wire.asked.borrow();
    assert_eq!(u32::from_le_bytes(question[..4].try_into().unwrap()) as usize, question.len());
    (question[4], question[7..].to_vec())
}

fn qid(version: u32, path: u64) -> Vec<u8> {
    [&[0x80][..], &version.to_le_bytes(), &path.to_le_bytes()].concat()
}

fn facts() -> Vec<u8> {
    let numbers = [3u64, 0x0801, 5000, 4096, 16, 100, 7, 200, 8, 300, 9, 400, 10, 11, 12];
    let numbers = numbers.into_iter().flat_map(u64::to_le_bytes);
    let mut body = [&0x7FFu64.to_le_bytes()[..], &qid(5, 6)].concat();
    body.extend([0o100_644u32, 1000, 100].into_iter().flat_map(u32::to_le_bytes));
    body.extend(numbers);
    body
}

fn names(list: &[(&str, u64)]) -> Vec<u8> {
    let mut data = Vec::new();
    for (name, next) in list {
        data.extend(qid(1, *next));
        data.extend(next.to_le_bytes());
        data.push(8);
        data.extend((name.len() as u16).to_le_bytes());
        data.extend(name.as_bytes());
    }
    [&(data.len() as u32).to_le_bytes()[..], &data].concat()
}

/// Every question with the body of a right answer.
type Question = (&'static str, Vec<u8>, fn(&Client<Server>) -> Result<(), Failure>);

const LOCK: LockRecord = LockRecord { kind: LockKind::Write, first: 1, bytes: 2, process: 3 };

fn questions() -> Vec<Question> {
    let version = [&8192u32.to_le_bytes()[..], &[8, 0], b"9P2000.L"].concat();
    let data = [&3u32.to_le_bytes()[..], b"abc"].concat();
    let lock = [&[1][..], &[0; 20], &[1, 0, b'x']].concat();
    vec![
        ("version", version, |client| client.version(8192).map(drop)),
        ("attach", qid(0, 1), |client| client.attach(Fid(1), 0).map(drop)),
        ("walk", [&[1, 0][..], &qid(0, 2)].concat(), |client| client.walk(Fid(1), Fid(2), &[b"a"]).map(drop)),
        ("facts", facts(), |client| client.facts(Fid(1)).map(drop)),
        ("change", vec![], |client| client.change(Fid(1), Change::default())),
        ("space", vec![1; 60], |client| client.space(Fid(1)).map(drop)),
        ("open", [&qid(0, 3)[..], &[0; 4]].concat(), |client| client.open(Fid(1), 0).map(drop)),
        ("create", [&qid(0, 3)[..], &[0; 4]].concat(), |client| client.create(Fid(1), b"n", 2, 0o644, 0).map(drop)),
        ("symlink", qid(0, 4), |client| client.make_symlink(Fid(1), b"n", b"t", 0).map(drop)),
        ("special", qid(0, 4), |client| client.make_special(Fid(1), b"n", 0o10_644, (0, 0), 0).map(drop)),
        ("directory", qid(0, 4), |client| client.make_directory(Fid(1), b"n", 0o755, 0).map(drop)),
        ("link", vec![], |client| client.link(Fid(1), Fid(2), b"n")),
        ("remove", vec![], |client| client.remove(Fid(1), b"n", true)),
        ("rename", vec![], |client| client.rename((Fid(1), b"a"), (Fid(2), b"b"))),
        ("target", [&[2, 0][..], b"to"].concat(), |client| client.link_target(Fid(1), &mut [0; 64]).map(drop)),
        ("read", data.clone(), |client| client.read(Fid(1), 9, &mut [0; 16]).map(drop)),
        ("write", 3u32.to_le_bytes().to_vec(), |client| client.write(Fid(1), 9, b"abc").map(drop)),
        ("clunk", vec![], |client| client.clunk(Fid(1))),
        ("sync", vec![], |client| client.sync(Fid(1), true)),
        ("list", names(&[("one", 1), ("two", 2)]), |client| client.list(Fid(1), 0, 512, &mut |_| true).map(drop)),
        ("lock", vec![0], |client| client.lock(Fid(1), LOCK).map(drop)),
        ("getlock", lock, |client| client.lock_in_the_way(Fid(1), LOCK).map(drop)),
        ("extended", vec![0; 8], |client| client.extended(Fid(1), Fid(2), b"user.a").map(drop)),
        ("set extended", vec![], |client| client.set_extended(Fid(1), b"user.a", 3, 0)),
    ]
}

#[test]
fn right_answers_are_taken() {
    for (name, body, ask) in questions() {
        assert_eq!(ask(&gives(&body)), Ok(()), "{name}");
    }
    assert_eq!(gives(&facts()).facts(Fid(7)), Ok(expected_facts()));
    let list = gives(&names(&[("one", 1), ("two", 2)]));
    let mut seen = Vec::new();
    let more = list.list(Fid(1), 5, 512, &mut |entry| {
        seen.push((String::from_utf8_lossy(entry.name).into_owned(), entry.next));
        true
    });
    assert_eq!((more, seen), (Ok(true), vec![("one".into(), 1), ("two".into(), 2)]));
    assert_eq!(gives(&[0; 4]).list(Fid(1), 5, 512, &mut |_| true), Ok(false), "the end");
    let mut bytes = [0; 16];
    let read = gives(&[3, 0, 0, 0, b'a', b'b', b'c']).read(Fid(1), 0, &mut bytes);
    assert_eq!((read, &bytes[..4]), (Ok(3), &b"abc\0"[..]));
}

fn expected_facts() -> Facts {
    Facts {
        qid: Qid { kind: 0x80, version: 5, path: 6 },
        mode: 0o100_644,
        user: 1000,
        group: 100,
        links: 3,
        device: 0x0801,
        bytes: 5000,
        blocks_512: 16,
        accessed: (100, 7),
        modified: (200, 8),
        changed: (300, 9),
    }
}

#[test]
fn questions_are_written_as_the_protocol_says() {
    let walk = gives(&[&[2, 0][..], &qid(0, 1), &qid(0, 2)].concat());
    let walked = walk.walk(Fid(1), Fid(2), &[b"ab", b"c"]);
    assert_eq!(walked, Ok(Walked::Whole(Qid { kind: 0x80, version: 0, path: 2 })));
    let (kind, body) = asked(&walk);
    assert_eq!((kind, body), (110, b"\x01\0\0\0\x02\0\0\0\x02\0\x02\0ab\x01\0c".to_vec()));
    let write = gives(&[3, 0, 0, 0]);
    assert_eq!(write.write(Fid(9), 0x1_0000_0002, b"xyz"), Ok(3));
    assert_eq!(asked(&write), (118, b"\x09\0\0\0\x02\0\0\0\x01\0\0\0\x03\0\0\0xyz".to_vec()));
    let set = gives(&[]);
    let change = Change { bytes: Some(7), modified: TimeWish::At(5, 6), accessed: TimeWish::Now, ..Change::default() };
    assert_eq!(set.change(Fid(1), change), Ok(()));
    let (kind, body) = asked(&set);
    assert_eq!((kind, body.len(), &body[4..8]), (26, 60, &[0b1_0011_1000, 1, 0, 0].map(|byte: u16| byte as u8)[..]));
    assert_eq!((&body[20..28], &body[44..52]), (&7u64.to_le_bytes()[..], &5u64.to_le_bytes()[..]));
    assert_eq!(gives(&[1; 60]).space(Fid(1)).map(|Space { blocks, .. }| blocks), Ok(0x0101_0101_0101_0101));
}

#[test]
fn a_refusal_is_the_caller_s_alone() {
    for (name, _, ask) in questions() {
        let refuses = |number: u32| {
            client(move |question| {
                let tag = u16::from_le_bytes([question[5], question[6]]);
                Some(answer(7, tag, &number.to_le_bytes()))
            })
        };
        assert_eq!(ask(&refuses(2)), Err(Failure::Refused(2)), "{name}");
        assert_eq!(ask(&refuses(0)), Err(Failure::Broken), "{name}: an error that is none");
        assert_eq!(ask(&refuses(70_000)), Err(Failure::Broken), "{name}: no number of Linux's");
    }
}

#[test]
fn silence_ends_when_the_carrier_says_so() {
    for (name, _, ask) in questions() {
        assert_eq!(ask(&client(|_| None)), Err(Failure::GivenUp), "{name}");
    }
}

#[test]
fn wrong_tags_and_kinds_are_not_believed() {
    for (name, body, ask) in questions() {
        let body = body.clone();
        let other = body.clone();
        let wrong_tag = client(move |question| Some(answer(question[4] + 1, 0x4321, &body)));
        assert_eq!(ask(&wrong_tag), Err(Failure::Broken), "{name}");
        let wrong_kind =
            client(move |question| Some(answer(question[4], u16::from_le_bytes([question[5], question[6]]), &other)));
        assert_eq!(ask(&wrong_kind), Err(Failure::Broken), "{name}");
    }
}

/// Every answer cut at every length, with its own length told and with the whole one's, and said to be longer than it is.
#[test]
fn short_answers_are_not_read_behind_their_end() {
    for (name, body, ask) in questions() {
        for cut in 0..body.len() {
            let part = body[..cut].to_vec();
            let result = ask(&gives(&part));
            // What the client does not look at may be missing.
            assert!(matches!(result, Ok(()) | Err(Failure::Broken)), "{name} cut at {cut}: {result:?}");
        }
        let whole = body.clone();
        let short = client(move |question| {
            let mut message = answer(question[4] + 1, u16::from_le_bytes([question[5], question[6]]), &whole);
            message[0] = message[0].wrapping_add(1);
            Some(message)
        });
        assert_eq!(ask(&short), Err(Failure::Broken), "{name}: a length behind the end");
        let lies = gives(&body);
        lies.wire.came.set(Some(ROOM + 1));
        assert_eq!(ask(&lies), Err(Failure::Broken), "{name}: more than there is room for");
        lies.wire.came.set(Some(6));
        assert_eq!(ask(&lies), Err(Failure::Broken), "{name}: no header");
    }
}

/// Every byte of every right answer replaced by every value.
#[test]
fn no_answer_is_too_strange() {
    for (name, body, ask) in questions() {
        for at in 0..7 + body.len() {
            for value in 0..=255 {
                let body = body.clone();
                let strange = client(move |question| {
                    let mut message = answer(question[4] + 1, u16::from_le_bytes([question[5], question[6]]), &body);
                    message[at] = value;
                    Some(message)
                });
                let result = ask(&strange);
                assert!(matches!(result, Ok(()) | Err(Failure::Broken | Failure::Refused(_))), "{name} {at} {value}");
            }
        }
    }
}

#[test]
fn lies_about_counts_are_found_out() {
    let mut bytes = [0; 2];
    assert_eq!(gives(&[3, 0, 0, 0, 1, 2, 3]).read(Fid(1), 0, &mut bytes), Err(Failure::Broken), "more than asked for");
    assert_eq!(gives(&[9, 0, 0, 0]).write(Fid(1), 0, b"abc"), Err(Failure::Broken), "more than given");
    assert_eq!(gives(&[0, 0]).walk(Fid(1), Fid(2), &[b"a"]), Err(Failure::Broken), "no name, and no error");
    let three = [&[3, 0][..], &qid(0, 1), &qid(0, 1), &qid(0, 1)].concat();
    assert_eq!(gives(&three).walk(Fid(1), Fid(2), &[b"a", b"b"]), Err(Failure::Broken), "more names than asked for");
    let part = [&[1, 0][..], &qid(0, 1)].concat();
    assert_eq!(gives(&part).walk(Fid(1), Fid(2), &[b"a", b"b"]), Ok(Walked::Part(1)));
    for name in ["", "a/b", "a\0"] {
        let list = gives(&names(&[(name, 1)]));
        assert_eq!(list.list(Fid(1), 0, 512, &mut |_| true), Err(Failure::Broken), "{name:?}");
    }
    let version = |room: u32, words: &[u8]| {
        let body = [&room.to_le_bytes()[..], &(words.len() as u16).to_le_bytes(), words].concat();
        gives(&body).version(8192).map(|session| session.room)
    };
    assert_eq!(version(8192, b"9P2000.L"), Ok(8192));
    assert_eq!(version(8193, b"9P2000.L"), Err(Failure::Broken), "longer than we can");
    assert_eq!(version(100, b"9P2000.L"), Err(Failure::Broken), "too short to talk");
    assert_eq!(version(8192, b"unknown"), Err(Failure::Broken));
}

#[test]
fn what_does_not_fit_is_not_asked() {
    let never = || client(|_| panic!("asked"));
    let long = vec![b'a'; ROOM];
    assert_eq!(never().make_symlink(Fid(1), b"n", &long, 0).err(), Some(Failure::Refused(36)));
    assert_eq!(never().walk(Fid(1), Fid(2), &[b"a".as_slice(); 17]).err(), Some(Failure::Refused(36)));
    let most = client(|question| {
        assert_eq!(question.len(), ROOM);
        Some(answer(119, TAG, &((ROOM - 23) as u32).to_le_bytes()))
    });
    assert_eq!(most.write(Fid(1), 0, &long), Ok(ROOM - 23), "as much as fits");
}
