package cpu

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/cpu"
)

// LevelVariable names the variable of the environment that limits the instructions of all kernels: ours, oneDNN's and
// OpenBLAS's. So ranks on unlike processors can compute the same bits.
const LevelVariable = "FLUENTPS_KERNELS_ISA"

// goProducts is the value of LibraryVariable for our own twins.
const goProducts = "go"

// LibraryVariable names the variable that chooses the library of products: onednn, openblas, go for our own twins, or a
// file. Unset: the first of these that is found.
const LibraryVariable = "FLUENTPS_KERNELS_LIBRARY"

// Level is a set of vector instructions, each with all that stands before it.
type Level uint8

const (
	Scalar Level = iota // no more than every processor of its architecture has
	AVX2                // with FMA
	AVX512              // F, CD, BW, DQ and VL, as servers have had since 2017
)

var levelNames = [...]string{Scalar: "none", AVX2: "avx2", AVX512: "avx512"}

func (l Level) String() string { return levelNames[l] }

// Processor is what this processor and its system can do, by the processor's own flags: a table of models would not know
// those that come after it.
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

// allowed is the level that kernels may use: the processor's, or what the variable limits it to.
func allowed(getenv func(string) string) (Level, error) {
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

// Set is the kernel set of a process: what decides the bits of its results, beside inputs and sizes. Two processes with equal
// sets compute equal bits, with any number of threads.
type Set struct {
	Products string // library, version, and the kernels that it uses: "oneDNN 2.6.3 avx2"
	Own      Level  // of our own kernels in C
}

func (s Set) String() string { return fmt.Sprintf("%s, own %s", s.Products, s.Own) }

// Weak says what keeps a set below what the processor can do, and what to do about it; "" where nothing does.
func Weak() string {
	s, err := opened()
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
		if len(s.passedOver) > 0 {
			return fmt.Sprintf("products are computed by %s, because of a library that was found and not taken: %s", s.set.Products, strings.Join(s.passedOver, "; "))
		}
		return ""
	}
	return fmt.Sprintf("kernels do not use all that the processor can do (%s), and may take several times as long; %s", processor, strings.Join(why, "; "))
}

// session is what this process computes with, once it is chosen.
type session struct {
	set      Set
	level    Level // that kernels may use
	products Level // that the library of products uses
	one      bool  // products only by one thread at a time, in the whole process
	// variables of the environment by which the user can limit the library.
	variables []string
	// passedOver says why libraries that come first, and were found, were not taken.
	passedOver []string
}

// Backend is the Set of this process as a text, or says what keeps it from computing.
func Backend() string {
	s, err := opened()
	if err != nil {
		return "not usable: " + err.Error()
	}
	return s.set.String()
}

// Open chooses the kernels of this process, once. A program calls it before other threads read the environment, as MPI's do:
// libraries are told through it.
func Open() error {
	_, err := opened()
	return err
}

// levelOfCore is the level of kernels that OpenBLAS names. Names that are not known are taken for what the processor can do,
// since they are newer than this list.
func levelOfCore(core string, processor Level) Level {
	for l, names := range [...]string{
		Scalar: "prescott core2 penryn dunnington nehalem athlon opteron opteron_sse3 barcelona bobcat atom nano sandybridge bulldozer piledriver steamroller",
		AVX2:   "excavator haswell zen",
		AVX512: "skylakex cooperlake sapphirerapids",
	} {
		if strings.Contains(" "+names+" ", " "+strings.ToLower(core)+" ") {
			return Level(l)
		}
	}
	return processor
}

// Bits of dnnl_cpu_isa_t that matter to products of float32.
const (
	onednnAVX2   = 0x4
	onednnAVX512 = 0x20
)

// levelOfISA is the level of what oneDNN says that it may use.
func levelOfISA(isa int) Level {
	switch {
	case isa < 0 || isa&onednnAVX512 != 0:
		return min(AVX512, Processor())
	case isa&onednnAVX2 != 0:
		return AVX2
	}
	return Scalar
}
