package mutations

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
)

// nasty are numbers and words that readers have failed on, here or elsewhere.
var nasty = []string{"-1", "0", "1", "2", "3", "255", "65536", "16777216", "2147483648", "4294967296",
	"1152921504606846976", "9223372036854775807", "-9223372036854775808", "18446744073709551616",
	"1e308", "1e999", "-0", "0.5", "nan", "inf", "-inf", "null", "true", "\"\"", "[]", "{}", "0x10", "1_000", "٣"}

// bits are texts to insert.
var bits = []string{"\x00", "\n", "\r", "\r\n", "\u0085", "\u2028", ",", ":", ";", "\"", "'", " ", "\t", "\\", "[",
	"]", "{", "}", "-", "*", "&a", "#", "\x1b[2J", "\xff", "\xef\xbb\xbf", "$(reboot)", "../../", "\v"}

var digits = regexp.MustCompile(`-?[0-9][0-9.eE+]*`)

type change struct {
	name string
	to   func(r *rand.Rand, data []byte) []byte
}

// part draws a short part of the data.
func part(r *rand.Rand, data []byte) (lo, hi int) {
	if len(data) == 0 {
		return 0, 0
	}
	lo = r.IntN(len(data))
	return lo, min(len(data), lo+1+r.IntN(64))
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// changes are for all kinds of files, text or not.
var changes = []change{
	{"a bit", func(r *rand.Rand, data []byte) []byte {
		data = bytes.Clone(data)
		for range 1 + r.IntN(3) {
			if len(data) > 0 {
				data[r.IntN(len(data))] ^= 1 << r.IntN(8)
			}
		}
		return data
	}},
	{"the end cut off", func(r *rand.Rand, data []byte) []byte { return data[:r.IntN(len(data)+1)] }},
	{"the last bytes cut off", func(r *rand.Rand, data []byte) []byte { return data[:max(0, len(data)-1-r.IntN(4))] }},
	{"a part cut out", func(r *rand.Rand, data []byte) []byte {
		lo, hi := part(r, data)
		return joined(data[:lo], data[hi:])
	}},
	{"a part twice", func(r *rand.Rand, data []byte) []byte {
		lo, hi := part(r, data)
		return joined(data[:hi], data[lo:])
	}},
	{"a part many times", func(r *rand.Rand, data []byte) []byte {
		lo, hi := part(r, data)
		return joined(data[:hi], bytes.Repeat(data[lo:hi], 1<<r.IntN(15)), data[hi:])
	}},
	{"parts swapped", func(r *rand.Rand, data []byte) []byte {
		lo, hi := part(r, data)
		from, to := part(r, data[hi:])
		return joined(data[:lo], data[hi:][from:to], data[hi:][:from], data[lo:hi], data[hi:][to:])
	}},
	{"bytes put in", func(r *rand.Rand, data []byte) []byte {
		at := r.IntN(len(data) + 1)
		return joined(data[:at], []byte(bits[r.IntN(len(bits))]), data[at:])
	}},
	{"a number", func(r *rand.Rand, data []byte) []byte {
		all := digits.FindAllIndex(data, -1)
		if len(all) == 0 {
			return data
		}
		at := all[r.IntN(len(all))]
		return joined(data[:at[0]], []byte(nasty[r.IntN(len(nasty))]), data[at[1]:])
	}},
	{"other line ends", func(r *rand.Rand, data []byte) []byte {
		return bytes.ReplaceAll(data, []byte("\n"), []byte([]string{"\r", "\r\n", "\u0085", "\u2028", "\v", "\f", " ", ""}[r.IntN(8)]))
	}},
	{"zeros at the end", func(r *rand.Rand, data []byte) []byte { return joined(data, make([]byte, 1<<r.IntN(18))) }},
	{"one long line", func(r *rand.Rand, data []byte) []byte {
		return joined(data, []byte(strings.Repeat([]string{"1", "1,", "1 ", "1:1 ", "-", "[", "{\"a\":", "a: ",
			"n[1-9]"}[r.IntN(9)], 1<<(6+r.IntN(12)))))
	}},
	{"noise", func(r *rand.Rand, _ []byte) []byte {
		noise := make([]byte, r.IntN(300))
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		return noise
	}},
}

func pack(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// packed changes the content of a gzip, and compresses it again, or changes the gzip itself.
func packed(r *rand.Rand, c change, data []byte) (string, []byte) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return c.name, c.to(r, data)
	}
	if r.IntN(2) == 0 {
		return c.name + ", of gzip", c.to(r, data)
	}
	inner, _ := io.ReadAll(zip)
	if r.IntN(20) == 0 {
		return "a bomb, packed", pack(joined(inner, bytes.Repeat(inner, (64<<20)/max(1, len(inner)))))
	}
	return c.name + ", packed", pack(c.to(r, inner))
}
