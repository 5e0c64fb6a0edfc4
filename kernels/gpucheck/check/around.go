//go:build cuda

package main

import (
	"context"
	_ "embed" // mpi/aware.c
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"fluentps/kernels"
	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
)

func isUnusable(err error) bool {
	none := (*cuda.Unusable)(nil)
	return errors.As(err, &none)
}

// pythonFolders prints the folders in which Python looks for packages.
const pythonFolders = "import sys; print('\\n'.join(sys.path))"

// withLibraries returns the environment in which checks find cuBLAS and cuDNN: also those that came with PyTorch or a toolkit.
func withLibraries() []string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	said, _ := exec.CommandContext(ctx, "python3", "-c", pythonFolders).Output() // no Python, no folders
	places := []string{"/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib"}
	for folder := range strings.Lines(string(said)) {
		if folder = strings.TrimSpace(folder); filepath.IsAbs(folder) {
			places = append(places, filepath.Join(folder, "nvidia", "*", "lib"), filepath.Join(folder, "torch", "lib"))
		}
	}
	var found []string
	if given := os.Getenv("LD_LIBRARY_PATH"); given != "" {
		found = append(found, given)
	}
	for _, place := range places {
		for _, library := range []string{"libcublas.so.1[123]", "libcudnn.so.[89]"} {
			files, _ := filepath.Glob(filepath.Join(place, library)) // the pattern is well formed
			for _, file := range files {
				if folder := filepath.Dir(file); !slices.Contains(found, folder) {
					found = append(found, folder)
				}
			}
		}
	}
	return []string{"LD_LIBRARY_PATH=" + strings.Join(found, ":"), givenVar + "=" + os.Getenv("LD_LIBRARY_PATH")}
}

// givenVar holds the LD_LIBRARY_PATH of gpu-check. PyTorch gets that: with another cuBLAS than its own it may not start.
const givenVar = "GPU_CHECK_LIBRARIES"

// tests returns a check that runs tests of a test binary. All of them must run, not be skipped.
func tests(program string, names ...string) func(*gpucheck.Report) error {
	return func(r *gpucheck.Report) error {
		path, err := beside(program)
		if err != nil {
			return err
		}
		size := fmt.Sprintf("%d tests", len(names))
		if !exists(path) {
			r.Skip(r.Name, size, "there is no %s: make gpu-test-bins", path)
			return nil
		}
		out, err := exec.Command(path, "-test.v", "-test.run", "^("+strings.Join(names, "|")+")$").CombinedOutput()
		passed := len(regexp.MustCompile(`(?m)^--- PASS`).FindAll(out, -1))
		if err == nil && passed == len(names) && !strings.Contains(string(out), "--- SKIP") {
			r.OK(r.Name, size, "")
			return nil
		}
		fmt.Fprintln(os.Stderr, string(out))
		if err == nil {
			err = fmt.Errorf("%d of them ran and passed, and the others, or parts, were skipped", passed)
		}
		r.Fail(r.Name, size, "%v", err)
		return nil
	}
}

// pinned pins the kinds of memory that the program uses, and times copies.
func pinned(r *gpucheck.Report) error {
	return onDevice(cuda.Options{}, func(d kernels.Device) error {
		for _, kind := range []struct {
			name string
			make func(bytes int) ([]byte, error)
		}{
			{"anonymous", func(n int) ([]byte, error) {
				return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
			}},
			{"huge pages", func(n int) ([]byte, error) {
				p, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
				if err == nil {
					err = syscall.Madvise(p, syscall.MADV_HUGEPAGE)
				}
				return p, err
			}},
			{"window", windowMemory},
		} {
			name, size := "pinned memory: "+kind.name, bytesOf(r.Sizes.Pinned)
			p, err := kind.make(r.Sizes.Pinned)
			if err != nil {
				r.Skip(name, size, "the system does not give it: %v", err)
				continue
			}
			vector := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(p))), len(p)/4)
			copy(vector, values(len(vector), 1, false))
			text := ""
			if kind.name == "huge pages" {
				text = fmt.Sprintf(", %d MiB of it in huge pages", hugeBytes(p)>>20)
			}
			in, out, err := cuda.CopyPinned(d, vector)
			if err != nil {
				r.Fail(name, size, "%v", err)
			} else {
				gigabytes := float64(len(p)) / 1e6 // per millisecond: GB per second
				r.OK(name, size, "%.1f GB/s to the GPU, %.1f GB/s to the host%s", gigabytes/in, gigabytes/out, text)
			}
			if err := syscall.Munmap(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// windowMemory maps a file of shared memory, as windows of MPI and of package shm do.
func windowMemory(bytes int) ([]byte, error) {
	f, err := os.CreateTemp("/dev/shm", "gpu-check")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Where there is too little shared memory, a write would end the process.
	if err := errors.Join(os.Remove(f.Name()), syscall.Fallocate(int(f.Fd()), 0, 0, int64(bytes))); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

// hugeBytes returns how many bytes of the mapping that begins at p lie in huge pages.
func hugeBytes(p []byte) (bytes int) {
	maps, _ := os.ReadFile("/proc/self/smaps")
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p))))
	inside := false
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= at && at < to
		}
		if kib := 0; inside {
			if n, _ := fmt.Sscanf(line, "AnonHugePages: %d kB", &kib); n == 1 {
				return kib << 10
			}
		}
	}
	return 0
}

//go:embed mpi/aware.c
var awareSource []byte

// awareSays begins the lines that say what went wrong, among those of the MPI.
const awareSays = "aware: "

func messages(gpucheck.Sizes) string { return "2 ranks, 1 KiB and 4 MiB" }

// awareMPI builds a program with the MPI of this machine. It sends from GPU to GPU if the MPI says that it can.
func awareMPI(r *gpucheck.Report) error {
	size := messages(r.Sizes)
	for _, tool := range []string{"mpicc", "mpirun"} {
		if _, err := exec.LookPath(tool); err != nil {
			r.Skip(r.Name, size, "%v", err)
			return nil
		}
	}
	dir, err := os.MkdirTemp("", "gpu-check-mpi")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source, program := filepath.Join(dir, "aware.c"), filepath.Join(dir, "aware")
	if err := os.WriteFile(source, awareSource, 0o600); err != nil {
		return err
	}
	if wrote, err := exec.Command("mpicc", "-O1", "-o", program, source, "-ldl").CombinedOutput(); err != nil {
		return fmt.Errorf("mpicc: %w", failure(err, wrote))
	}
	ctx := context.Background()
	if r.Budget > 0 { // before the budget ends, so that mpirun can end its ranks
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Budget*4/5)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, "mpirun", "-n", "2", program)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
		"PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe")
	var wrote strings.Builder
	cmd.Stderr = &wrote
	said, err := cmd.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, wrote.String())
		if _, line, found := strings.Cut(wrote.String(), awareSays); found {
			line, _, _ = strings.Cut(line, "\n")
			return errors.New(line)
		}
		return fmt.Errorf("mpirun: %w", err)
	}
	answer, library, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	switch answer {
	case "ok":
		r.OK(r.Name, size, "%s: messages from GPU to GPU", library)
	case "no", "unknown":
		r.Skip(r.Name, size, "%s does not say that it is CUDA-aware", library)
	default:
		r.Fail(r.Name, size, "the program said %q", said)
	}
	return nil
}

// sanitizer returns a check that runs the conformance suite under a tool of compute-sanitizer.
func sanitizer(tool string) func(*gpucheck.Report) error {
	return func(r *gpucheck.Report) error {
		const name = "compute-sanitizer"
		program, err := exec.LookPath(name)
		if err != nil {
			program = "/usr/local/cuda/bin/" + name
		}
		if err != nil && !exists(program) {
			r.Skip(r.Name, casesOf(r.Sizes), "%v", err)
			return nil
		}
		suite := self(suiteAid)
		cmd := exec.Command(program, "--tool", tool, "--error-exitcode", "9", suite.Path)
		cmd.Env = suite.Env
		out, err := cmd.CombinedOutput()
		if err != nil {
			fmt.Fprintln(os.Stderr, string(out))
			r.Fail(r.Name, casesOf(r.Sizes), "%v", err)
			return nil
		}
		if found := regexp.MustCompile(`(?m)^\d+ kernels$`).Find(out); found != nil {
			r.OK(r.Name, casesOf(r.Sizes), "%s", found)
		} else {
			r.Fail(r.Name, casesOf(r.Sizes), "the suite did not say that it is done")
		}
		return nil
	}
}
