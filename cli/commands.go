package cli

import ucli "github.com/urfave/cli/v2"

// Categories group commands in the help.
const (
	categoryOperations = "Operations"
	categoryResources  = "Resources"
	categoryServers    = "Servers"
	categoryMachine    = "This machine"
)

// commands is every command there is.
func commands() []*ucli.Command {
	return []*ucli.Command{
		// Operations
		applyCommand(),
		watchCommand(),
		cancelCommand(),
		retryCommand(),
		skipCommand(),
		abortCommand(),
		deleteCommand(),
		startCommand(),
		stopCommand(),
		restartCommand(),
		configureCommand(),
		rebuildCommand(),
		historyCommand(),
		driftCommand(),
		sweepCommand(),
		// Resources
		validateCommand(),
		getCommand(),
		describeCommand(),
		schemaCommand(),
		imageCommand(),
		networkCommand(),
		hostCommand(),
		secretCommand(),
		// Servers
		logsCommand(),
		sshCommand(),
		sshConfigCommand(),
		hostKeysCommand(),
		consoleCommand(),
		dialCommand(),
		inventoryCommand(),
		// This machine
		upCommand(),
		downCommand(),
		statusCommand(),
		workerCommand(),
		backupCommand(),
		restoreCommand(),
		doctorCommand(),
		completionCommand(),
		versionCommand(),
	}
}
