package kernels

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// machineCode is what ptxas makes of an entry for sm_90.
type machineCode struct {
	registers, spilled int // of a thread; spilled in bytes
	total              int // instructions
	// The loop with the most multiplications and additions (FFMA), and the instructions of the loop around it. 0: there is no such loop.
	loop, products, around int
}

const machineCodeTable = "cuda/ptx/machine-code.txt"

const machineCodeHead = `# What ptxas 11.8 makes of each entry for sm_90: bounds of TestMachineCode, which also writes them (-update).
# loop: instructions of the innermost loop with the most products; around: instructions of the loop around it, without the inner one.
`

func (m machineCode) line(entry string) string {
	return fmt.Sprintf("%-32s registers %3d  spilled %3d  instructions %4d  loop %4d  products %3d  around %3d\n",
		entry, m.registers, m.spilled, m.total, m.loop, m.products, m.around)
}

func readMachineCode(t *testing.T) map[string]machineCode {
	text, err := os.ReadFile(machineCodeTable)
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]machineCode{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var entry string
		var m machineCode
		if _, err := fmt.Sscanf(line, "%s registers %d spilled %d instructions %d loop %d products %d around %d",
			&entry, &m.registers, &m.spilled, &m.total, &m.loop, &m.products, &m.around); err != nil {
			t.Fatalf("%s: %q: %v", machineCodeTable, line, err)
		}
		table[entry] = m
	}
	return table
}

// Every entry of the PTX has a line in the table. The bounds need ptxas, this does not.
func TestEveryEntryHasABound(t *testing.T) {
	var have []string
	for _, k := range Table {
		for entry := range entries(k.CUDA.PTX) {
			have = append(have, entry)
		}
	}
	slices.Sort(have)
	have = slices.Compact(have)
	const out = "go test ./kernels -run TestMachineCode -update, with ptxas and cuobjdump of CUDA 11.8 in PATH (Debian's " +
		"nvidia-cuda-toolkit, also unpacked with dpkg -x)"
	table := readMachineCode(t)
	for _, entry := range have {
		if _, there := table[entry]; !there {
			t.Errorf("entry %s of the PTX has no line in %s; %s", entry, machineCodeTable, out)
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(have, entry) {
			t.Errorf("%s has a line of %s, which is no entry of the PTX; %s", machineCodeTable, entry, out)
		}
	}
}

// No entry takes more registers or instructions than the table says.
func TestMachineCode(t *testing.T) {
	version, err := exec.Command("ptxas", "--version").Output()
	if _, missing := exec.LookPath("cuobjdump"); err != nil || missing != nil || !strings.Contains(string(version), "release 11.8") {
		t.Skip("needs ptxas and cuobjdump of CUDA 11.8 (Debian's nvidia-cuda-toolkit, also unpacked with dpkg -x, in PATH)")
	}
	have := map[string]machineCode{}
	names, err := fs.Glob(sources, "*/*.cu")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		maps.Copy(have, assembled(t, strings.TrimSuffix(name, ".cu")+".ptx"))
	}
	if *update {
		text := machineCodeHead
		for _, entry := range slices.Sorted(maps.Keys(have)) {
			text += have[entry].line(entry)
		}
		if err := os.WriteFile(machineCodeTable, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bounds := readMachineCode(t)
	for _, entry := range slices.Sorted(maps.Keys(have)) {
		m, most := have[entry], bounds[entry]
		if m.registers > most.registers || m.spilled > most.spilled || m.total > most.total ||
			m.products != most.products || m.loop > most.loop || m.around > most.around {
			t.Errorf("it is\n%sat most is allowed\n%s", m.line(entry), most.line(entry))
		}
	}
}

var (
	propertiesOf  = regexp.MustCompile(`Function properties for (\w+)\n.* (\d+) bytes spill stores.*\n.*Used (\d+) registers`)
	functionOf    = regexp.MustCompile(`Function : (\w+)`)
	instructionOf = regexp.MustCompile(`^\s*/\*([0-9a-f]{4,})\*/\s+(?:@\S+\s+)?([A-Z][A-Z0-9]*)(.*?);`)
	targetOf      = regexp.MustCompile(`0x([0-9a-f]+)`)
)

// assembled returns the machine code of the entries of a PTX file.
func assembled(t *testing.T, ptx string) map[string]machineCode {
	t.Helper()
	cubin := filepath.Join(t.TempDir(), "cubin")
	said, err := exec.Command("ptxas", "-v", "-arch=sm_90", "-o", cubin, ptx).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", ptx, err, said)
	}
	found := map[string]machineCode{}
	for _, m := range propertiesOf.FindAllStringSubmatch(string(said), -1) {
		found[m[1]] = machineCode{registers: number(t, m[3], 10), spilled: number(t, m[2], 10)}
	}
	sass, err := exec.Command("cuobjdump", "-sass", cubin).Output()
	if err != nil {
		t.Fatalf("%s: %v", ptx, err)
	}
	entry := ""
	var code []instruction
	count := func() {
		if entry != "" {
			m := found[entry]
			m.count(code)
			found[entry] = m
		}
		code = code[:0]
	}
	for line := range bytes.Lines(sass) {
		if m := functionOf.FindSubmatch(line); m != nil {
			count()
			entry = string(m[1])
		} else if m := instructionOf.FindSubmatch(line); m != nil {
			i := instruction{at: number(t, string(m[1]), 16), name: string(m[2])}
			if target := targetOf.FindSubmatch(m[3]); target != nil && i.name == "BRA" {
				i.target = number(t, string(target[1]), 16)
			}
			code = append(code, i)
		}
	}
	count()
	return found
}

// instruction is one of SASS; target is that of a jump.
type instruction struct {
	at, target int
	name       string
}

func number(t *testing.T, text string, base int) int {
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// count counts instructions. A jump back makes a loop.
func (m *machineCode) count(code []instruction) {
	const few = 16 // products of a loop that does not matter
	for i, jump := range code {
		if jump.name != "NOP" {
			m.total++
		}
		if jump.name != "BRA" || jump.target >= jump.at {
			continue
		}
		length, products := 0, 0
		for j := i; j >= 0 && code[j].at >= jump.target; j-- {
			length++
			if code[j].name == "FFMA" {
				products++
			}
		}
		switch {
		case products < few:
		case products > m.products || products == m.products && length < m.loop:
			m.loop, m.products, m.around = length, products, 0
		case products == m.products && (m.around == 0 || length-m.loop < m.around):
			m.around = length - m.loop
		}
	}
}
