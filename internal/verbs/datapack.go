package verbs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
)

func dataPackCommand() *cli.Command {
	return &cli.Command{
		Name:      "pack",
		Usage:     "write a data set as one file that all ranks of a host map",
		ArgsUsage: "CONFIG | SET PATH",
		Description: "The file has the rows as they are trained on: bytes of images stay bytes, texts are numbered, and test rows are\n" +
			"split off. data: {set: packed, path: FILE} trains on it, to the same bits. It is read by pages, so it may be\n" +
			"larger than memory, and each block has a checksum.\n" + precedence,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "write the set to `FILE`, such as set.fps"},
			&cli.BoolFlag{Name: "force", Usage: "replace the file of --out if it exists"},
			&cli.StringFlag{Name: "test", Usage: "test `FILE` of csv, parquet, libsvm, ratings and images; with SET PATH only"},
			setFlag(),
		},
		Action: dataPackVerb,
	}
}

func dataPackVerb(c *cli.Context) error {
	out := c.String("out")
	if out == "" {
		return usagef("data pack: name the file to write, as in --out set.fps")
	}
	spec, err := dataSpec(c)
	if err != nil {
		return err
	}
	if err := checkNew("data pack: --out", out, c.Bool("force")); err != nil {
		return err
	}
	spec.Pictures.Stream = spec.Set == "images"
	set, err := dataset.Load(spec)
	if err != nil {
		return &exitError{codeUsage, err.Error()}
	}
	noteData(c, set.Notes)
	if err := notSource(out, set); err != nil {
		return err
	}
	file, err := durable.CreateNew(out)
	if err != nil {
		return fmt.Errorf("data pack: %w", err)
	}
	done := removedBySignals(file.Name())
	shown := time.Now()
	sum, err := set.Pack(file.File, "fluentps "+buildText(), func(rows, all int) {
		if time.Since(shown) >= packShown {
			shown = time.Now()
			fmt.Fprintf(c.App.ErrWriter, "packed %d of %d rows\n", rows, all)
		}
	})
	var size int64
	if err == nil {
		size, err = file.Seek(0, io.SeekCurrent)
	}
	done()
	if err := file.End(err, c.Bool("force")); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w; name another file, or replace it with --force", err)
		}
		return fmt.Errorf("data pack: %s: %w", foreign.Text(out), err)
	}
	regress := ""
	if set.Targets != (dataset.Targets{}) {
		regress = ", task: regress"
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: %d training rows, %d test rows, %s, sha256 of the index %s\n  data: {set: packed, path: %s%s}\n",
		foreign.Text(out), set.Train.Rows(), set.Test.Rows(), metrics.Size(size), sum, foreign.Word(out), regress)
	return err
}

// packShown is how often the progress of packing is shown.
const packShown = 5 * time.Second

// notSource fails if the file to write is one that the set is read from.
func notSource(out string, set *dataset.Set) error {
	there, err := os.Stat(out)
	if err != nil {
		return nil // there is none
	}
	for _, f := range set.Files {
		if from, err := os.Stat(f.Path); err == nil && os.SameFile(there, from) {
			return usagef("data pack: --out %s is a file of the set itself; name another file", foreign.Text(out))
		}
	}
	return nil
}

// removedBySignals removes a file when a signal ends the process before done is called.
func removedBySignals(name string) (done func()) {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		if s, ok := <-stopped; ok {
			_ = os.Remove(name) // the process ends in any case
			number, _ := s.(syscall.Signal)
			os.Exit(128 + int(number))
		}
	}()
	return func() {
		signal.Stop(stopped)
		close(stopped)
	}
}
