package lock

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"fluentps/internal/disk/durable"
)

// holderVar names the folder that a child process of the test locks until its input ends.
const holderVar = "FLUENTPS_TEST_HOLDER"

// A process in a time namespace, in which the host was booted at another time, does not count as dead: it recorded its
// start time by its own clock.
func TestALockFromAnotherNamespaceOfTimeIsHeld(t *testing.T) {
	if dir := os.Getenv(holderVar); dir != "" {
		l, err := Take(durable.Below(dir), Owner{}, func(string) {}, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("taken")
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		release(t, l)
		return
	}
	unshare := []string{"--time", "--boottime=100000", "--fork"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	if out, err := exec.Command("unshare", append(unshare, "true")...).CombinedOutput(); err != nil {
		t.Skipf("no time namespace on this machine: %v %s", err, out)
	}
	dir := t.TempDir()
	holder := exec.Command("unshare", append(unshare, os.Args[0], "-test.run=^"+t.Name()+"$")...)
	holder.Env = append(os.Environ(), holderVar+"="+dir)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "taken\n" {
		t.Fatalf("%q, %v", line, err)
	}
	now, err := (&Lock{in: durable.Below(dir)}).read(Name)
	if err != nil {
		t.Fatal(err)
	}
	me := Owner{PID: os.Getpid(), Machine: machine()}
	if now.isDead(&me) {
		t.Errorf("%+v lives, but counts as dead", now)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Error(err)
	}
	if err := holder.Wait(); err != nil {
		t.Error(err)
	}
}
