package foreign

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"[256, 128]":                        "[256, 128]",
		"Größe µ 模型":                        "Größe µ 模型",
		"":                                  `""`,
		"\x1b[2J":                           `"\x1b[2J"`,
		"a\nb":                              `"a\nb"`,
		"a\u202eb":                          `"a\u202eb"`,
		"a\u200bb":                          `"a\u200bb"`,
		"\xff":                              `"\xff"`,
		"\u009b31m":                         `"\u009b31m"`,
		strings.Repeat("a", 300):            `"` + strings.Repeat("a", 200) + `"...`,
		"a" + strings.Repeat("\u6a21", 200): `"a` + strings.Repeat("\u6a21", 66) + `"...`,
	} {
		if got := Text(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestWord(t *testing.T) {
	for s, want := range map[string]string{"node-1.cluster": "node-1.cluster", "7; rm -rf ~": `"7; rm -rf ~"`,
		"$(x)": `"$(x)"`, "a b": `"a b"`, "\x1b": `"\x1b"`, "": `""`} {
		if got := Word(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

// A message keeps its lines, and any other control character in it is escaped.
func TestVisible(t *testing.T) {
	if s := "fluentps: a\n\tb … ü\n"; Visible(s) != s {
		t.Errorf("%q", Visible(s))
	}
	if got, want := Visible("a\x1b[2J\r\xff\u202e\ufffd\n"), `a\x1b[2J\r\xff\u202e`+"\ufffd\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b[2J", "\xff", strings.Repeat("\u6a21", 80), "7; rm -rf ~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, shown := range []string{Text(s), Word(s), Visible(s)} {
			if !utf8.ValidString(shown) {
				t.Fatalf("%q: not UTF-8: %q", s, shown)
			}
			for _, r := range shown {
				if !unicode.IsGraphic(r) && r != '\n' && r != '\t' {
					t.Fatalf("%q: %q holds %q", s, shown, r)
				}
			}
		}
		if strings.ContainsAny(Text(s)+Word(s), "\n\t") || len(Text(s)) > 20*textMax {
			t.Fatalf("%q: %q", s, Text(s))
		}
	})
}

func TestIsJob(t *testing.T) {
	for s, want := range map[string]bool{"7": true, "12_3": true, "12+1": true, "": false, "7; rm -rf ~": false,
		"-u": false, "12_": false, "_3": false, "12_3_4": false, "7\n": false, "١": false, strings.Repeat("1", 21): false} {
		if IsJob(s) != want {
			t.Errorf("%q: %t, want %t", s, IsJob(s), want)
		}
	}
}
