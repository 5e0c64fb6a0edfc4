//go:build cuda

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"fluentps/kernels"
	"fluentps/kernels/cuda"
	"fluentps/kernels/cuemu"
	"fluentps/kernels/gpucheck"
)

// driverMin is the CUDA version of the oldest driver that takes our PTX.
const driverMin = 11080

// open makes a device. Tests put one that computes wrong values in its place.
var open = cuda.New

// device returns a device on the first GPU.
func device(o cuda.Options) (kernels.Device, error) {
	gpus, err := cuda.GPUs()
	if err != nil {
		return nil, err
	}
	return open(gpus[0], o)
}

// onDevice does something with a device on the first GPU and closes it. The emulated driver then reports what was not released.
func onDevice(o cuda.Options, do func(d kernels.Device) error) error {
	d, err := device(o)
	if err != nil {
		return err
	}
	return errors.Join(do(d), d.Close())
}

// processors is how many threads the CPU computes with. More gain little at these sizes.
func processors() int { return min(16, runtime.NumCPU()) }

func driver(r *gpucheck.Report) error {
	gpus, err := cuda.GPUs()
	if err != nil {
		return err
	}
	c, err := cuda.CardOf(gpus[0])
	if err != nil {
		return err
	}
	row := gpucheck.Row{Name: r.Name, Size: fmt.Sprintf("%d GPU", len(gpus)), Outcome: gpucheck.OK,
		Emulated: strings.HasPrefix(gpus[0].Name, "Emulated GPU")}
	row.Text = fmt.Sprintf("%s, capability %d.%d, %.0f GB, %s, CUDA %d.%d", gpus[0].Name, c.Major, c.Minor,
		float64(gpus[0].Memory)/1e9, gpus[0].UUID, c.Driver/1000, c.Driver%1000/10)
	if said, err := smi("driver_version"); err == nil {
		row.Text += ", driver " + said
	}
	if c.Driver < driverMin {
		row.Outcome, row.Text = gpucheck.Failed, row.Text+
			fmt.Sprintf(": the kernels need a driver of CUDA %d.%d or newer (520)", driverMin/1000, driverMin%1000/10)
	}
	r.Send(row)
	return nil
}

// smi asks nvidia-smi about the first GPU.
func smi(what string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu="+what, "--format=csv,noheader", "-i", "0").Output()
	return strings.TrimSpace(string(out)), err
}

func clocks(r *gpucheck.Report) error {
	gpus, err := cuda.GPUs()
	if err != nil {
		return err
	}
	c, err := cuda.CardOf(gpus[0])
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d multiprocessors at up to %d MHz: %.1f TFLOP/s in float32; %d bits at %d MHz: %.2f TB/s",
		c.Multiprocessors, c.ClockKHz/1000, c.FLOPs()/1e12,
		c.BusBits, c.MemoryKHz/1000, c.Bytes()/1e12)
	said, err := smi("clocks.sm,clocks.mem,temperature.gpu,power.draw,clocks_throttle_reasons.active")
	if err != nil {
		said = "not known (nvidia-smi: " + err.Error() + ")"
	}
	text += "; now (clocks, temperature, power, why they are low): " + said
	if c.FLOPs() == 0 || c.Bytes() == 0 {
		r.Fail(r.Name, "-", "%s; the driver does not say enough for a peak, or the lanes of capability %d.%d are not known",
			text, c.Major, c.Minor)
		return nil
	}
	r.OK(r.Name, "-", "%s", text)
	return nil
}

// symbols fails if the driver lacks a function that package cuda calls. It names the others that the program is linked with.
func symbols(r *gpucheck.Report) error {
	linked, missing, err := cuda.Functions()
	if err != nil {
		return err
	}
	calls := cuemu.Calls()
	size := fmt.Sprintf("%d functions", linked)
	var needed, others []string
	for _, name := range missing {
		if slices.Contains(calls, name) {
			needed = append(needed, name)
		} else {
			others = append(others, name)
		}
	}
	if len(needed) > 0 {
		r.Fail(r.Name, size, "the driver lacks %s, which the program calls", strings.Join(needed, " "))
		return nil
	}
	text := fmt.Sprintf("the driver has all %d that the program calls", len(calls))
	if len(others) > 0 {
		text += fmt.Sprintf(", and lacks %d that it does not call (%s ...)", len(others), others[0])
	}
	r.OK(r.Name, size, "%s", text)
	return nil
}

func modules(gpucheck.Sizes) string {
	ptx := map[string]bool{}
	for _, k := range kernels.Table {
		if k.CUDA != nil {
			ptx[k.CUDA.PTX] = true
		}
	}
	return fmt.Sprintf("%d modules", len(ptx))
}

const openAid = "open a device"

// openOnce prints the milliseconds that a context and all kernels take.
func openOnce() error {
	began := time.Now()
	d, err := device(cuda.Options{})
	if err != nil {
		return err
	}
	fmt.Println(1e3 * time.Since(began).Seconds())
	return d.Close()
}

// jit times a first start, whose kernels the driver compiles, and a second one, which finds them in the driver's cache.
func jit(r *gpucheck.Report) error {
	cache, err := os.MkdirTemp("", "gpu-check-jit")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	var took [2]float64
	for i := range took {
		out, err := self(openAid, cacheVar+"="+cache, "CUDA_CACHE_DISABLE=0").Output()
		if err != nil {
			return failure(err, nil)
		}
		if took[i], err = strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err != nil {
			return err
		}
	}
	r.OK(r.Name, modules(r.Sizes), "%.0f ms cold, %.0f ms warm, with the context", took[0], took[1])
	return nil
}
