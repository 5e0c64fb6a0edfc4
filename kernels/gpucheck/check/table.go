//go:build cuda

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fluentps/kernels"
	"fluentps/kernels/gpucheck"
)

// table lists the checks in their order: what the next ones rest on, what is right, what is fast, what stands around, and at the end
// the sanitizers, which take what is left of the time. Of the speeds, those come first that are worth most should it end early: our steps,
// PyTorch's as a graph, cuDNN. torch.compile takes minutes, and gets what the others leave. The budgets leave at
// least sanitizersMin of the default limit. init fills it, because the checks start themselves by their names here.
var table []gpucheck.Check

const sanitizersMin = 60 * time.Second

// aids are parts of checks that run in processes of their own.
var aids map[string]func() error

func init() {
	one := func(gpucheck.Sizes) string { return "-" }
	table = []gpucheck.Check{
		{Name: "driver", Budget: 10 * time.Second, Size: one, Run: driver, Gate: true},
		{Name: "clocks", Budget: 10 * time.Second, Size: one, Run: clocks},
		{Name: "symbols", Budget: 5 * time.Second, Size: one, Run: symbols},
		{Name: "JIT cold and warm", Budget: 30 * time.Second, Size: modules, Run: jit},
		{Name: "every kernel against float64", Budget: 35 * time.Second, Size: casesOf, Run: conformance},
		{Name: "kernels at training sizes", Budget: 35 * time.Second, Size: batchOf, Run: training},
		{Name: "long vectors", Budget: 15 * time.Second, Size: func(s gpucheck.Sizes) string { return fmt.Sprint(s.LongMin) }, Run: long},
		{Name: "products of cuBLAS", Budget: 15 * time.Second, Size: casesOf, Run: blas},
		{Name: "gradients of one step", Budget: 15 * time.Second, Size: netSize("resnet20"), Run: gradients},
		{Name: "steps beside the CPU", Budget: 30 * time.Second, Size: func(s gpucheck.Sizes) string {
			return fmt.Sprintf("%s, %d steps", netSize(s.Net)(s), s.Steps)
		}, Run: losses},
		{Name: "copies, events, threads, steady memory", Budget: 30 * time.Second, Size: one, Run: tests("cuda.test",
			"TestWrappedMemoryIsWhatTheProgramSays", "TestFetchedMemoryIsThereWhenTheEventHasPassed", "TestEveryGoroutineMayUseTheDevice",
			"TestAnIterationTakesNoMemory", "TestWrongArgumentsAreErrors", "TestPlacedMemoryIsCopiedWhereNobodyElseReachesIt")},
		{Name: "two workers train as on the CPU", Budget: 30 * time.Second, Size: one, Run: tests("program.test",
			"TestTwoWorkersTrainOnGPUsAsOnTheCPU", "TestStepsOfTheirOwnOnGPUs")},
		{Name: "our steps", Budget: 25 * time.Second, Size: peerModels, Run: ourSteps},
		{Name: "PyTorch CUDA graph", Budget: 45 * time.Second, Size: peerModels, Run: torchWay(graphWay)},
		{Name: "convolutions beside cuDNN", Budget: 30 * time.Second, Size: convsOf, Run: convolutions},
		{Name: "PyTorch eager", Budget: 40 * time.Second, Size: peerModels, Run: torchWay(eagerWay)},
		{Name: "PyTorch compiled", Budget: 50 * time.Second, Elastic: true, Size: peerModels, Run: torchWay(compiledWay)},
		{Name: "ours / PyTorch's best", Budget: 5 * time.Second, Size: peerModels, Run: best},
		{Name: "step times", Budget: 20 * time.Second, Size: modelsOf, Run: stepTimes},
		{Name: "kernels by events", Budget: 20 * time.Second, Size: batchOf, Run: kernelTimes},
		{Name: "products by events", Budget: 5 * time.Second, Size: productsOf, Run: productTimes},
		{Name: "pinned memory", Budget: 10 * time.Second, Size: func(s gpucheck.Sizes) string { return bytesOf(s.Pinned) }, Run: pinned},
		{Name: "two ranks on one GPU", Budget: 10 * time.Second, Size: func(s gpucheck.Sizes) string {
			return fmt.Sprintf("%s, %d steps each", netSize(s.Net)(s), s.SharedSteps)
		}, Run: shared},
		{Name: "CUDA-aware MPI", Budget: 15 * time.Second, Size: messages, Run: awareMPI},
		{Name: "compute-sanitizer memcheck", Size: casesOf, Run: sanitizer("memcheck")},
		{Name: "compute-sanitizer racecheck", Size: casesOf, Run: sanitizer("racecheck")},
	}
	aids = map[string]func() error{openAid: openOnce, trainAid: trainOnce, suiteAid: suite}
}

func casesOf(s gpucheck.Sizes) string {
	if s.Cases > 1 {
		return fmt.Sprintf("%d kernels, one case of %d", len(kernels.Table), s.Cases)
	}
	return fmt.Sprintf("%d kernels, all cases", len(kernels.Table))
}

func batchOf(s gpucheck.Sizes) string { return fmt.Sprintf("batch %d", s.Batch) }

func modelsOf(s gpucheck.Sizes) string {
	return fmt.Sprintf("%s, batch %d", strings.Join(s.StepModels, " "), s.Batch)
}

func productsOf(s gpucheck.Sizes) string {
	var all []string
	for _, n := range s.Products {
		all = append(all, gpucheck.By(n[:3]))
	}
	return strings.Join(all, " ")
}

func bytesOf(n int) string { return fmt.Sprintf("%d MiB", n>>20) }

// verdict runs the checks whose names contain one of the words, or all, within the limit. Beyond the default one,
// budgets grow with the limit. It returns the exit code.
func verdict(out, errs io.Writer, limit time.Duration, words []string) int {
	path, err := os.Executable()
	if err != nil {
		fmt.Fprintln(errs, "gpu-check:", err)
		return 2
	}
	chosen, no := choose(words)
	if len(chosen) == 0 {
		fmt.Fprintf(errs, "gpu-check: no check has a name with %q; there are:\n", no)
		for _, c := range table {
			fmt.Fprintln(errs, "  "+c.Name)
		}
		return 2
	}
	began := time.Now() // looking for cuBLAS counts, too
	folder, err := os.MkdirTemp("", "gpu-check")
	if err != nil {
		fmt.Fprintln(errs, "gpu-check:", err)
		return 2
	}
	defer os.RemoveAll(folder)
	program := gpucheck.Program{Path: path, Env: append(withLibraries(), figuresVar+"="+filepath.Join(folder, "figures"))}
	if os.Getenv(cacheVar) == "" { // or every process might compile all kernels again
		program.Env = append(program.Env, cacheVar+"="+filepath.Join(folder, "cache"))
	}
	if limit > defaultLimit { // a slow machine
		for i := range chosen {
			chosen[i].Budget = time.Duration(float64(chosen[i].Budget) * limit.Seconds() / defaultLimit.Seconds())
		}
	}
	fmt.Fprintf(out, "%s, %s\n\n", time.Now().Format(time.DateOnly), processor())
	runner := gpucheck.Runner{Out: out, Err: errs, Checks: chosen, Limit: limit, Reserve: time.Since(began) +
		gpucheck.Grace, Start: program.Start, Now: time.Now}
	return runner.Run()
}

// cacheVar names the folder in which the driver keeps what it has compiled.
const cacheVar = "CUDA_CACHE_PATH"

// choose returns the checks that the words name, or all. The gate is always among them. Without checks, no is the word that names none.
func choose(words []string) (chosen []gpucheck.Check, no string) {
	names := func(c gpucheck.Check, word string) bool { return strings.Contains(c.Name, word) }
	for _, word := range words {
		if !slices.ContainsFunc(table, func(c gpucheck.Check) bool { return names(c, word) }) {
			return nil, word
		}
	}
	for _, c := range table {
		if len(words) == 0 || c.Gate || slices.ContainsFunc(words, func(word string) bool { return names(c, word) }) {
			chosen = append(chosen, c)
		}
	}
	return chosen, ""
}

// processor names the processor of this machine.
func processor() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
