package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"fluentps/internal/disk/durable"
)

// The owner of a run folder can change and remove its files at any time, and so can every user who may write it. That includes
// checkpoints, which a run reads again. Groups that share the folder of a project do so on purpose.

// checkOwner refuses a folder that its owner, or any user, could use against this process. It warns of a folder that others may
// write.
func (f *RunFolder) checkOwner() error {
	owner, err := f.Owner()
	if err != nil {
		return folderError(f.Dir, err)
	}
	whose := fmt.Sprintf("%s belongs to %s", f.Dir, owner)
	switch {
	case !owner.Mine && os.Geteuid() == 0:
		return fmt.Errorf("run folder: %s, and root uses no folder of another user; run as that user, or choose another "+
			"folder with --out, which may be a new one in it", whose)
	case !owner.Mine && owner.Public:
		return fmt.Errorf("run folder: %s, and anybody may write it; choose another folder with --out, which may be a new one in it", whose)
	case !owner.Mine:
		f.Warnings = append(f.Warnings, "the run folder "+whose+
			", who can change the files that this run writes, and the checkpoints that a resumed run reads")
	case owner.Public:
		f.Warnings = append(f.Warnings, fmt.Sprintf("anybody may write the run folder %s, and so change results and "+
			"checkpoints: chmod o-w %s, and umask 022 before the next run", f.Dir, f.Dir))
	}
	return nil
}

// RunFolders lists the run folders of this user below Root/Name, the newest first. others counts the folders of other users: any
// user who may write there can make one.
func RunFolders(s FolderSpec) (dirs []string, others int) {
	parent := durable.Below(filepath.Join(s.Root, s.Name))
	defer parent.Close()
	entries, err := parent.List()
	if err != nil {
		return nil, 0 // there are none yet, or the new run will report why it cannot make one
	}
	for _, e := range slices.Backward(entries) { // entries are sorted by name, and a name begins with the time
		if !e.IsDir() {
			continue
		}
		if owner, err := parent.OwnerOf(e.Name()); err != nil || !owner.Mine {
			others++
			continue
		}
		dirs = append(dirs, parent.Path(e.Name()))
	}
	return dirs, others
}

// OthersText says that the run folders of other users are ignored.
func OthersText(s FolderSpec, others int) string {
	return fmt.Sprintf("resume: %d run folders in %s belong to other users and are ignored; --resume DIR resumes from "+
		"one of them", others, filepath.Join(s.Root, s.Name))
}
