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

// candidates are the files of a library, by the names that a loader finds: versions of its interface that we know.
var candidates = []struct {
	name  string
	files []string
}{
	{"onednn", []string{"libdnnl.so.3", "libdnnl.so.2"}},
	{"openblas", []string{"libopenblas.so.0", "libopenblas.so"}},
}

// kind is the library that is open; 0: none, and products are ours.
var kind C.products_kind

// opened chooses the library of products and the level of all kernels, when it is first called.
var opened = sync.OnceValues(func() (session, error) { return open(os.Getenv) })

func open(getenv func(string) string) (session, error) {
	level, err := allowed(getenv)
	if err != nil {
		return session{}, err
	}
	s := session{set: Set{Products: ownProducts, Own: min(level, bestOwn())}, level: level}
	wanted := getenv(LibraryVariable)
	if wanted == goProducts {
		return s, nil
	}
	files, err := filesOf(wanted)
	if err != nil {
		return session{}, err
	}
	var wrong []string
	for _, file := range files {
		var l C.products_library
		problem := openFile(file, level, getenv, &l)
		if problem == "" {
			kind = l.kind
			return s.with(&l)
		}
		if !strings.HasPrefix(problem, file) { // as the loader's own texts begin
			problem = file + ": " + problem
		}
		wrong = append(wrong, problem)
		if !strings.Contains(problem, "No such file") {
			s.passedOver = append(s.passedOver, problem)
		}
	}
	if wanted != "" {
		return session{}, fmt.Errorf("%s is %s, but %s; name a library that this host has, or unset it", LibraryVariable, wanted, strings.Join(wrong, "; "))
	}
	return session{}, fmt.Errorf("no library that multiplies matrices: %s; install oneDNN (Debian: libdnnl-dev) or OpenBLAS (libopenblas0), "+
		"load the module that has it, or name a file: export %s=FILE; %s=%s computes without, many times slower",
		strings.Join(wrong, "; "), LibraryVariable, LibraryVariable, goProducts)
}

// with is the session with a library that was opened.
func (s session) with(l *C.products_library) (session, error) {
	s.one = l.one_caller != 0
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
	if s.products > Processor() { // else the first product would end the process
		return session{}, fmt.Errorf("OPENBLAS_CORETYPE has OpenBLAS take its kernels %s, for %s, and this processor has %s; unset it", core, s.products, Processor())
	}
	return s, nil
}

// filesOf are the files to try, in their order. oneDNN was the faster one on every x86-64 processor that was measured
// (README.md); elsewhere it has plain loops where OpenBLAS has kernels.
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
		return nil, fmt.Errorf("%s is %q, must be %s, %s, or a file with a / in its name", LibraryVariable, wanted, strings.Join(names, ", "), goProducts)
	}
	return files, nil
}

// openFile opens a library with the kernels of the level, but where the user has said which.
func openFile(file string, level Level, getenv func(string) string, l *C.products_library) string {
	core, isa := "", ""
	// Among processors without AVX2 OpenBLAS tells more apart than our levels do, and they are older than it.
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

// coreOf is what OpenBLAS calls its kernels for a level; it takes those of a processor only where it knows the model.
func coreOf(l Level) string {
	return [...]string{Scalar: "Nehalem", AVX2: "Haswell", AVX512: "SkylakeX"}[l]
}

// openBLASVersion takes the version out of a text such as "OpenBLAS 0.3.21 DYNAMIC_ARCH Zen MAX_THREADS=64".
func openBLASVersion(config string) string {
	words := strings.Fields(config)
	if len(words) < 2 {
		return "of unknown version"
	}
	return cmp.Or(words[1], "of unknown version")
}

// onednnName names the instructions of products in float32 among what oneDNN may use.
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

// multiply computes a tile of C: rows times columns of it, at c.
func multiply(op gemm.Op, rows, columns, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) error {
	transA, transB := C.char('N'), C.char('N')
	switch op {
	case gemm.NT:
		transB = 'T'
	case gemm.TN:
		transA = 'T'
	}
	if code := C.products_multiply(kind, transA, transB, C.long(rows), C.long(columns), C.long(k), pointer(a), C.long(lda), pointer(b), C.long(ldb),
		C.float(beta), pointer(c), C.long(ldc)); code != 0 {
		return refused(fmt.Sprintf("a product of %d x %d x %d", rows, columns, k), int(code))
	}
	return nil
}

// noMemory is oneDNN's status dnnl_out_of_memory (dnnl_types.h).
const noMemory = 1

// refused is the error of what oneDNN did not do, by its status. That it gets no memory is no mistake of the program.
func refused(what string, status int) error {
	if status == noMemory {
		return &kernels.Failure{Device: "cpu", Op: "oneDNN: " + what, Why: "the system gives no more memory; give the job more, or start fewer ranks on a host"}
	}
	return fmt.Errorf("cpu: oneDNN: %s failed with status %d", what, status)
}

// alone is held by a product where the library takes one caller at a time.
var alone sync.Mutex

func multiplyAlone(op gemm.Op, rows, columns, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) error {
	alone.Lock()
	defer alone.Unlock()
	return multiply(op, rows, columns, k, a, lda, b, ldb, beta, c, ldc)
}

func pointer(x []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(x))) }
