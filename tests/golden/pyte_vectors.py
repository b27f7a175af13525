#!/usr/bin/env python3
"""Compares the text window's VT-100 with pyte, a terminal in Python that others wrote (https://github.com/selectel/pyte).

    python3 -m venv V && V/bin/pip install pyte
    cargo build --release -p golden --example screen
    V/bin/python tests/golden/pyte_vectors.py target/release/examples/screen [SEED [COUNT]]

Prints the first text whose characters, cursor or attributes differ, and fails. With --vectors it prints texts and pyte's
screens, as they stand in tests/golden/vt100.txt, where `cargo test -p golden --test vt100` reads them.

What is left out, because the two follow different terminals: pyte is an xterm that clears with the current attributes
and keeps a pending wrap over a line feed; ours is the console of Linux. Its ESC E does not return, its HPA has another name.
"""
import random
import subprocess
import sys

import pyte

COLORS = ["black", "red", "green", "brown", "blue", "magenta", "cyan", "white"]
VGA = [0, 4, 2, 6, 1, 5, 3, 7]


def text(rng):
    """Pieces of text, control characters and sequences. The cursor stays between the margins, for beyond them pyte draws it in."""
    out = b""
    margins, saved = (1, 24), False
    kind = rng.choice(["mixed", "lines", "editor"])
    for _ in range(rng.randrange(5, 120)):
        what = rng.randrange(12)
        if kind == "lines" and what < 10:
            out += bytes(rng.randrange(33, 127) for _ in range(rng.choice([3, 30, 79, 80, 81, 100]))) + b"\r\n"
        elif what < 5:
            out += bytes(rng.randrange(32, 127) for _ in range(rng.randrange(1, 40)))
        elif what == 5:
            out += rng.choice([b"\r", b"\r\n", b"\x08", b"\r\t", b"\r\x0b", b"\r\x0c", b"\x07"])
        elif what == 6:
            piece = rng.choice([b"\r\x1bD", b"\r\x1bE", b"\r\x1bM", b"\x1b7", b"\x1b8"])
            # pyte has a stack of saved cursors.
            if piece == b"\x1b8" and (not saved or margins != (1, 24)):
                continue
            saved = piece == b"\x1b7" if piece[-1:] in b"78" else saved
            out += piece
        elif what == 7:
            row = rng.randrange(0, 27) if margins == (1, 24) else rng.randrange(margins[0], margins[1] + 1)
            out += b"\x1b[%d;%dH" % (row, rng.randrange(0, 84))
        elif what == 8:
            names = b"ABCDEFGade" if margins == (1, 24) else b"ABCDEFGa"
            column = b"\r\x1b[%dC" % rng.randrange(1, 70)
            out += column + b"\x1b[%s%c" % (rng.choice([b"", b"0", b"1", b"3", b"100"]), rng.choice(names))
        elif what == 9:
            # With the cursor not behind the last column, where the two differ.
            column = b"\r\x1b[%dC" % rng.randrange(1, 60)
            out += column + b"\x1b[%s%c" % (rng.choice([b"", b"1", b"2"]), rng.choice(b"JK"))
        elif what == 10:
            name = rng.choice(b"LMP@X")
            column = b"" if name in b"LM" else b"\x1b[%dC" % rng.randrange(1, 60)
            out += b"\r" + column + b"\x1b[%s%c" % (rng.choice([b"", b"2", b"7"]), name)
        else:
            numbers = rng.choice([b"", b"1", b"7", b"4", b"1;31", b"44", b"0", b"22", b"27", b"39;49", b"33;1;7"])
            out += b"\x1b[" + numbers + b"m"
            if rng.randrange(5) == 0:
                top = rng.randrange(1, 12)
                margins = rng.choice([(1, 24), (top, top + rng.randrange(1, 12))])
                out += b"\x1b[%d;%dr\x1b[%d;1H" % (margins + margins[:1])
            if rng.randrange(8) == 0:
                out += b"\x1b]0;a title\x07"
    return out


def attribute(char):
    fg = VGA[COLORS.index(char.fg)] if char.fg != "default" else 7
    bg = VGA[COLORS.index(char.bg)] if char.bg != "default" else 0
    value = bg << 4 | fg
    if char.underscore:
        value = value & 0xF0 | 3
    if char.reverse:
        value = value & 0x88 | (value >> 4 | value << 4) & 0x77
    return value ^ (8 if char.bold else 0)


class Screen(pyte.Screen):
    """pyte moves no row that nothing was ever written to, and keeps what is pushed out at the right."""

    def delete_lines(self, count=None):
        for row in range(24):
            self.buffer[row]
        super().delete_lines(count)

    def insert_characters(self, count=None):
        super().insert_characters(count)
        line = self.buffer[self.cursor.y]
        for column in [column for column in line if column > 79]:
            del line[column]


def shown(data):
    screen = Screen(80, 24)
    pyte.ByteStream(screen).feed(data)
    rows = [[screen.buffer[row][column] for column in range(80)] for row in range(24)]
    return (screen.cursor.y, min(screen.cursor.x, 79)), rows


def main():
    vectors = "--vectors" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--vectors"]
    seed, count = (int(word) for word in (arguments[1:] + ["1", "400"][len(arguments) - 1:])[:2])
    rng = random.Random(seed)
    texts = [text(rng) for _ in range(count)]
    if vectors:
        for data in texts:
            cursor, rows = shown(data)
            for at in range(0, len(data), 60):
                print("more" if at else "text", data[at:at + 60].hex())
            print("cursor", *cursor)
            for number, row in enumerate(rows):
                line = "".join(char.data for char in row).rstrip()
                if line:
                    print("row", number, line)
        return
    lines = "\n".join(data.hex() for data in texts) + "\n"
    ours = subprocess.run([arguments[0]], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    for data, line in zip(texts, ours, strict=True):
        row, column, cells = line.split()
        cursor, rows = shown(data)
        cells = [int(cells[at:at + 4], 16) for at in range(0, len(cells), 4)]
        for at, (cell, char) in enumerate(zip(cells, sum(rows, []))):
            same = cell & 255 == ord(char.data) and (char.data == " " or cell >> 8 == attribute(char))
            if not same:
                sys.exit(f"{data!r}\nrow {at // 80} column {at % 80}: {cell:04x}, pyte has {char}")
        if (int(row), int(column)) != cursor:
            sys.exit(f"{data!r}\ncursor {row} {column}, pyte has {cursor}")
    print(f"{count} texts, {sum(map(len, texts))} bytes: all cells and cursors are the same (seed {seed})")


main()
