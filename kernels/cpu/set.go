package cpu

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/cpu"
)

// LevelVariable names the environment variable that limits the instructions of all kernels: ours, oneDNN's and
// OpenBLAS's. With it, ranks on different processors can compute the same bits.
const LevelVariable = "FLUENTPS_KERNELS_ISA"

// twinLibrary is the value of LibraryVariable for the Go twins.
const twinLibrary = "go"

// LibraryVariable names the environment variable that chooses the library of products: onednn, openblas, go for the Go
// twins, or a file. If it is unset, the first library that is found.
const LibraryVariable = "FLUENTPS_KERNELS_LIBRARY"

// Level is a set of vector instructions. Each level includes the levels before it.
type Level uint8

const (
	Scalar Level = iota // only what every processor of the architecture has
	AVX2                // with FMA
	AVX512              // F, CD, BW, DQ and VL, as servers have had since 2017
)

var levelNames = [...]string{Scalar: "none", AVX2: "avx2", AVX512: "avx512"}

func (l Level) String() string { return levelNames[l] }

// Processor returns the level that this processor and its system support, by the processor's own flags. A table of models
// would not know later models.
func Processor() Level {
	x := cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512CD && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX2 && x.HasFMA:
		return AVX512
	case x.HasAVX2 && x.HasFMA:
		return AVX2
	}
	return Scalar
}

// allowedLevel returns the level that kernels may use: the processor's, or the limit in LevelVariable if that is lower. It fails
// if the variable names no level.
func allowedLevel(getenv func(string) string) (Level, error) {
	name := getenv(LevelVariable)
	if name == "" {
		return Processor(), nil
	}
	for l, known := range levelNames {
		if strings.EqualFold(name, known) {
			return min(Level(l), Processor()), nil
		}
	}
	return Scalar, fmt.Errorf("%s is %q, must be %s", LevelVariable, name, strings.Join(levelNames[:], ", "))
}

// Set is the kernel set of a process: everything, beside inputs and sizes, that decides the bits of results. Two processes with
// equal sets compute equal bits, with any number of threads.
type Set struct {
	Products string // library, version, and the kernels that the library uses: "oneDNN 2.6.3 avx2"
	Own      Level  // of our own kernels in C
}

func (s Set) String() string { return fmt.Sprintf("%s, own %s", s.Products, s.Own) }

// Weak says why the kernel set uses less than the processor offers, and how to change that; "" if it uses all.
func Weak() string {
	s, err := chosen()
	if err != nil {
		return ""
	}
	return weak(s, Processor(), os.Getenv)
}

func weak(s session, processor Level, getenv func(string) string) string {
	var why []string
	if s.level < processor {
		why = append(why, fmt.Sprintf("%s is %s: unset it", LevelVariable, getenv(LevelVariable)))
	} else if s.products < processor {
		hint := "install oneDNN, or a newer version"
		for _, name := range append(s.variables, LibraryVariable) {
			if value := getenv(name); value != "" {
				hint = fmt.Sprintf("%s is %s: unset it", name, value)
				break
			}
		}
		why = append(why, fmt.Sprintf("products are computed by %s: %s", s.set.Products, hint))
	}
	if len(why) == 0 {
		if len(s.skipped) > 0 {
			return fmt.Sprintf("products are computed by %s, because a preferred library was found but cannot be used: %s",
				s.set.Products, strings.Join(s.skipped, "; "))
		}
		return ""
	}
	return fmt.Sprintf("kernels do not use all instructions of the processor (%s), and may take several times as "+
		"long; %s", processor, strings.Join(why, "; "))
}

// session is the choice of kernels that this process has made.
type session struct {
	set       Set
	level     Level    // the highest level that kernels may use
	products  Level    // the level that the library of products uses
	oneCaller bool     // only one thread of the process at a time may call the library
	variables []string // the library's own environment variables that limit it
	skipped   []string // preferred libraries that were found but cannot be used, with the reasons
}

// Backend returns the Set of this process as a text, or the reason why it cannot compute.
func Backend() string {
	s, err := chosen()
	if err != nil {
		return "not usable: " + err.Error()
	}
	return s.set.String()
}

// Open chooses the kernels of this process, once. A program must call it before other threads, such as those of MPI, read the
// environment, because Open passes settings to libraries through it.
func Open() error {
	_, err := chosen()
	return err
}

// levelOfCore returns the level of OpenBLAS's core type. An unknown core type is newer than this list, so it is taken for the
// processor's level.
func levelOfCore(core string, processor Level) Level {
	for l, names := range [...]string{
		Scalar: "prescott core2 penryn dunnington nehalem athlon opteron opteron_sse3 barcelona bobcat atom nano " +
			"sandybridge bulldozer piledriver steamroller",
		AVX2:   "excavator haswell zen",
		AVX512: "skylakex cooperlake sapphirerapids",
	} {
		if strings.Contains(" "+names+" ", " "+strings.ToLower(core)+" ") {
			return Level(l)
		}
	}
	return processor
}

// Bits of dnnl_cpu_isa_t that affect products in float32.
const (
	onednnAVX2   = 0x4
	onednnAVX512 = 0x20
)

// levelOfISA returns the level of the instructions that oneDNN may use.
func levelOfISA(isa int) Level {
	switch {
	case isa < 0 || isa&onednnAVX512 != 0:
		return min(AVX512, Processor())
	case isa&onednnAVX2 != 0:
		return AVX2
	}
	return Scalar
}
