package metrics

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/disk/durable"
	"fluentps/internal/show/metrics/records"
	"fluentps/internal/show/metrics/timings"
)

// nobody is the ID of a user who is not root.
const nobody = 65534

// asEnv is the variable that makes this test binary act as another user and exit.
const asEnv = "FLUENTPS_TEST_AS_OTHER"

func TestMain(m *testing.M) {
	if text := os.Getenv(asEnv); text != "" {
		var s FolderSpec
		must(json.Unmarshal([]byte(text), &s))
		dirs, others := RunFolders(s)
		f, err := CreateRunFolder(s)
		answer := asOther{Dirs: dirs, Others: others}
		if err != nil {
			answer.Err = err.Error()
		} else {
			answer.Warnings = f.Warnings
		}
		must(json.NewEncoder(os.Stdout).Encode(answer))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type asOther struct {
	Dirs     []string
	Others   int
	Warnings []string
	Err      string
}

// shared returns a folder that every user can reach. It skips the test unless root runs it: only root can act as another user.
func shared(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	dir, err := os.MkdirTemp("/tmp", "fluentps-shared-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// byNobody looks for run folders and makes one, as another user.
func byNobody(t *testing.T, s FolderSpec) (answer asOther) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe") // another user cannot reach the folder of this binary
	cmd.Env, cmd.Dir = append(os.Environ(), asEnv+"="+string(text)), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return answer
}

func run(t *testing.T, parent, name string, uid int, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := errors.Join(os.MkdirAll(dir, 0o777), os.Chown(dir, uid, uid), os.Chmod(dir, mode)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// RunFolders finds only the runs of the user who calls it in a folder shared by all, whatever the names of the other runs.
func TestRunsOfOthersAreIgnored(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky} {
		root := shared(t)
		parent := run(t, root, "first", 0, mode)
		roots := run(t, parent, "20260101T000000Z-1", 0, 0o755)
		others := run(t, parent, "20990101T000000Z-2", nobody, 0o777)
		s := FolderSpec{Root: root, Name: "first", Now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), JobID: "3"}
		if dirs, n := RunFolders(s); n != 1 || len(dirs) != 1 || dirs[0] != roots {
			t.Errorf("%v: root finds %v and %d of others", mode, dirs, n)
		}
		if got := byNobody(t, s); got.Others != 1 || len(got.Dirs) != 1 || got.Dirs[0] != others || got.Err != "" {
			t.Errorf("%v: the other user finds %+v", mode, got)
		}
		if text := OthersText(s, 1); !strings.Contains(text, "1 run folders in "+parent+" belong to other users and are ignored") {
			t.Error(text)
		}
	}
}

// Root uses no folder of another user. Other users use no folder that anybody may write, and get a warning about the owner of a
// folder that a group shares.
func TestOwnerOfAFolderIsChecked(t *testing.T) {
	root := shared(t)
	s := FolderSpec{Out: run(t, root, "theirs", nobody, 0o755)}
	_, err := CreateRunFolder(s)
	if err == nil || !strings.Contains(err.Error(), s.Out+" belongs to user ") ||
		!strings.Contains(err.Error(), "root uses no folder of another user; run as that user, or choose another folder with --out") {
		t.Error(err)
	}
	if _, err := OpenRunFolder(s.Out); err == nil || !strings.Contains(err.Error(), "root uses no folder of another user") {
		t.Error(err)
	}
	if left, err := os.ReadDir(s.Out); err != nil || len(left) > 0 {
		t.Errorf("%v, %v were left there", left, err)
	}
	f, err := CreateRunFolder(FolderSpec{Out: filepath.Join(s.Out, "new")})
	if err != nil || len(f.Warnings) > 0 {
		t.Errorf("a new folder in it: %v", err)
	}
	got := byNobody(t, FolderSpec{Out: run(t, root, "all", 0, 0o777)})
	if !strings.Contains(got.Err, "belongs to user root (0), and anybody may write it; choose another folder with --out") {
		t.Errorf("%+v", got)
	}
	project := run(t, root, "project", 0, 0o775|os.ModeSetgid)
	if err := os.Chown(project, 0, nobody); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(project, 0o775|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if got := byNobody(t, FolderSpec{Out: project}); got.Err != "" || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0], "the run folder "+project+" belongs to user root (0), who can change the files that this run writes") {
		t.Errorf("%+v", got)
	}
	if got := byNobody(t, FolderSpec{Out: run(t, root, "own", nobody, 0o2775)}); got.Err != "" || len(got.Warnings) > 0 {
		t.Errorf("%+v", got)
	}
}

// The run begins with a warning if the link latest belongs to another user and may not be replaced.
func TestTheLinkOfAnotherUserStays(t *testing.T) {
	root := shared(t)
	parent := run(t, root, "first", 0, 0o777|os.ModeSticky)
	if err := os.Symlink("roots", filepath.Join(parent, "latest")); err != nil {
		t.Fatal(err)
	}
	got := byNobody(t, FolderSpec{Root: root, Name: "first", Now: time.Now(), JobID: "3"})
	if got.Err != "" || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "latest is another user's link and stays as it is") {
		t.Errorf("%+v", got)
	}
	if to, err := os.Readlink(filepath.Join(parent, "latest")); err != nil || to != "roots" {
		t.Errorf("latest -> %s, %v", to, err)
	}
	if left, err := filepath.Glob(filepath.Join(parent, ".latest*")); err != nil || len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A run folder that anybody may write, as with a umask of 0, gets a warning.
func TestAFolderThatAnybodyMayWriteGetsAWarning(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := CreateRunFolder(FolderSpec{Out: dir})
	if err != nil || len(f.Warnings) != 1 ||
		!strings.Contains(f.Warnings[0], "anybody may write the run folder "+dir+", and so change results and checkpoints: chmod o-w "+dir) {
		t.Errorf("%v, %v", f, err)
	}
	closed := t.TempDir()
	if f, err := CreateRunFolder(FolderSpec{Out: closed}); err != nil || len(f.Warnings) > 0 {
		t.Errorf("%v, %v", f, err)
	}
}

// Links that another user puts in place of the files of a run never make the run write outside of its folder.
func TestLinksInARunFolderAreNotFollowed(t *testing.T) {
	dir, treasure := t.TempDir(), filepath.Join(t.TempDir(), "treasure")
	if err := os.WriteFile(treasure, []byte("worker,iter\nsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := CreateRunFolder(FolderSpec{Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{durable.Beside("summary.json"), "summary.json", "metrics.csv", "metrics.jsonl",
		durable.Beside(timings.FileName), timings.FileName, LogName(0)} {
		if err := os.Symlink(treasure, f.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	link := "is a symbolic link"
	of := records.Subject{Run: "a", Rules: []records.Rule{{Match: "*", Scheme: "bsp"}}}
	errs := map[string]error{"": f.Write("summary.json", []byte("{}"))}
	_, errs["file exists"] = records.Open(f.Folder, records.SinkNames(), of)
	_, errs[link] = f.OpenLog(0)
	_, resumed := records.Resume(f.Folder, records.SinkNames(), map[string]int64{"csv": 3}, of)
	_, _, kept := timings.Kept(f.Folder, []int64{3})
	i, err := timings.Create(f.Folder)
	if err == nil {
		err = i.Close(true)
	}
	for want, err := range errs {
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, err := range []error{resumed, kept} {
		if err == nil || !strings.Contains(err.Error(), link) {
			t.Errorf("%v, want %q", err, link)
		}
	}
	if err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(treasure); err != nil || string(data) != "worker,iter\nsecret\n" {
		t.Errorf("the file outside has %q, %v", data, err)
	}
	for _, name := range []string{"summary.json", timings.FileName} {
		if info, err := os.Lstat(f.Path(name)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
