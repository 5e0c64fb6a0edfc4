//go:build blas

package cpu

// #cgo LDFLAGS: -ldl
// #include "libraries.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"unsafe"

	"fluentps/kernels"
	"fluentps/kernels/gemm"
)

// candidates are the libraries and the names of their files, for the interface versions that this package supports.
var candidates = []struct {
	name  string
	files []string
}{
	{"onednn", []string{"libdnnl.so.3", "libdnnl.so.2"}},
	{"openblas", []string{"libopenblas.so.0", "libopenblas.so"}},
}

// kind is the open library; 0: none, and the Go twins compute products.
var kind C.products_kind

// chosen chooses the library of products and the level of all kernels at its first call, and returns the same choice later.
var chosen = sync.OnceValues(func() (session, error) { return open(os.Getenv) })

func open(getenv func(string) string) (session, error) {
	level, err := allowedLevel(getenv)
	if err != nil {
		return session{}, err
	}
	s := session{set: Set{Products: twinProducts, Own: min(level, ownLevelMax())}, level: level}
	wanted := getenv(LibraryVariable)
	if wanted == twinLibrary {
		return s, nil
	}
	files, err := filesOf(wanted)
	if err != nil {
		return session{}, err
	}
	var problems []string
	for _, file := range files {
		var l C.products_library
		problem := openFile(file, level, getenv, &l)
		if problem == "" {
			kind = l.kind
			return s.withLibrary(&l)
		}
		if !strings.HasPrefix(problem, file) { // the loader's own texts begin with the file
			problem = file + ": " + problem
		}
		problems = append(problems, problem)
		if !strings.Contains(problem, "No such file") {
			s.skipped = append(s.skipped, problem)
		}
	}
	if wanted != "" {
		return session{}, fmt.Errorf("%s is %s, but %s; name a library that this host has, or unset it", LibraryVariable,
			wanted, strings.Join(problems, "; "))
	}
	return session{}, fmt.Errorf("found no library for matrix products: %s; install oneDNN (Debian: libdnnl-dev) or OpenBLAS (libopenblas0), "+
		"load a module that provides one, or name a file with export %s=FILE; %s=%s computes without a library, many times slower",
		strings.Join(problems, "; "), LibraryVariable, LibraryVariable, twinLibrary)
}

// withLibrary returns the session that uses an open library. It fails if the library would use instructions that the
// processor lacks.
func (s session) withLibrary(l *C.products_library) (session, error) {
	s.oneCaller = l.one_caller != 0
	if l.kind == C.LIBRARY_ONEDNN {
		s.products = levelOfISA(int(l.isa))
		s.set.Products = fmt.Sprintf("oneDNN %s %s", C.GoString(&l.version[0]), onednnName(int(l.isa)))
		s.variables = []string{"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}
		return s, nil
	}
	core := C.GoString(&l.core[0])
	s.products = levelOfCore(core, Processor())
	s.set.Products = fmt.Sprintf("OpenBLAS %s %s", openBLASVersion(C.GoString(&l.version[0])), core)
	s.variables = []string{"OPENBLAS_CORETYPE"}
	if s.products > Processor() { // the first product would end the process
		return session{}, fmt.Errorf("OPENBLAS_CORETYPE selects OpenBLAS's kernels %s, which need %s, but this processor "+
			"has %s; unset it", core, s.products, Processor())
	}
	return s, nil
}

// filesOf returns the files to try, in their order. oneDNN was the faster library on every x86-64 processor that was measured
// (README.md). On other processors it has plain loops and OpenBLAS has kernels.
func filesOf(wanted string) (files []string, err error) {
	if strings.Contains(wanted, "/") {
		return []string{wanted}, nil
	}
	var names []string
	for _, c := range candidates {
		names = append(names, c.name)
		switch {
		case wanted == c.name:
			return c.files, nil
		case wanted == "" && c.name == "onednn" && goruntime.GOARCH != "amd64":
			defer func() { files = append(files, c.files...) }()
		case wanted == "":
			files = append(files, c.files...)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s is %q, must be %s, %s, or a file with a / in its name", LibraryVariable, wanted,
			strings.Join(names, ", "), twinLibrary)
	}
	return files, nil
}

// openFile opens a library and makes it use the kernels of the level, unless the user has chosen its kernels. It returns ""
// or the problem.
func openFile(file string, level Level, getenv func(string) string, l *C.products_library) string {
	core, isa := "", ""
	// For processors without AVX2, OpenBLAS itself chooses better: it has more core types than our levels, and knows them all.
	if goruntime.GOARCH == "amd64" && getenv("OPENBLAS_CORETYPE") == "" && (level > Scalar || level < Processor()) {
		core = coreOf(level)
	}
	if level < Processor() && getenv("ONEDNN_MAX_CPU_ISA") == "" && getenv("DNNL_MAX_CPU_ISA") == "" {
		isa = [...]string{Scalar: "SSE41", AVX2: "AVX2", AVX512: "AVX512_CORE"}[level]
	}
	words := [...]*C.char{C.CString(file), C.CString(core), C.CString(isa)}
	defer func() {
		for _, w := range words {
			C.free(unsafe.Pointer(w))
		}
	}()
	return C.GoString(C.products_open(words[0], words[1], words[2], l))
}

// coreOf returns OpenBLAS's core type for a level. By itself OpenBLAS finds the right core type only for models that it knows.
func coreOf(l Level) string {
	return [...]string{Scalar: "Nehalem", AVX2: "Haswell", AVX512: "SkylakeX"}[l]
}

// openBLASVersion returns the version in a text such as "OpenBLAS 0.3.21 DYNAMIC_ARCH Zen MAX_THREADS=64".
func openBLASVersion(config string) string {
	words := strings.Fields(config)
	if len(words) < 2 {
		return "of unknown version"
	}
	return cmp.Or(words[1], "of unknown version")
}

// onednnName names the instructions that oneDNN uses for products in float32, out of those that it may use.
func onednnName(isa int) string {
	if isa < 0 {
		return "of unknown instructions"
	}
	for _, i := range []struct {
		bits int
		name string
	}{{onednnAVX512, "avx512"}, {onednnAVX2, "avx2"}, {2, "avx"}, {1, "sse4.1"}} {
		if isa&i.bits != 0 {
			return i.name
		}
	}
	return "plain"
}

// multiply computes one tile of C, of rows x columns elements, at c.
func multiply(op gemm.Op, rows, columns, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) error {
	transA, transB := C.char('N'), C.char('N')
	switch op {
	case gemm.NT:
		transB = 'T'
	case gemm.TN:
		transA = 'T'
	}
	if code := C.products_multiply(kind, transA, transB, C.long(rows), C.long(columns), C.long(k), pointer(a),
		C.long(lda), pointer(b), C.long(ldb),
		C.float(beta), pointer(c), C.long(ldc)); code != 0 {
		return oneDNNError(fmt.Sprintf("a product of %d x %d x %d", rows, columns, k), int(code))
	}
	return nil
}

// noMemory is oneDNN's status dnnl_out_of_memory (dnnl_types.h).
const noMemory = 1

// oneDNNError returns the error for a status of oneDNN. A lack of memory is a Failure, because it is not a bug of the program.
func oneDNNError(what string, status int) error {
	if status == noMemory {
		return &kernels.Failure{Device: "cpu", Op: "oneDNN: " + what,
			Why: "the system is out of memory; give the job more memory, or start fewer ranks per host"}
	}
	return fmt.Errorf("cpu: oneDNN: %s failed with status %d", what, status)
}

// productLock serializes products when the library allows only one caller at a time.
var productLock sync.Mutex

func multiplyOneCaller(op gemm.Op, rows, columns, k int, a []float32, lda int, b []float32, ldb int, beta float32,
	c []float32, ldc int) error {
	productLock.Lock()
	defer productLock.Unlock()
	return multiply(op, rows, columns, k, a, lda, b, ldb, beta, c, ldc)
}

func pointer(x []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(x))) }
