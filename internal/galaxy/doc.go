// Package galaxy reads the requirements files of ansible-galaxy, and keeps what was installed
// for one so that it is installed once.
//
//	requirements.yml ─Parse─▶ entries: what each is called, is it pinned, is it a file of the folder
//
//	<cache>/            root, group of the playbooks' user: it may read, not write
//	├── <key>/          roles/ collections/, complete: it gets its name last
//	└── .new-…          not complete; Clean removes what a killed worker left
package galaxy
