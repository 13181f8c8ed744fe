#!/bin/sh
# Registers Burrow's namespace in a Temporal cluster: 90 days of history, typed search
# attributes. What is there already stays as it is.
set -eu

namespace=burrow
retention=2160h

temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$namespace" --retention "$retention" --description "Burrow's operations"

# A new namespace takes a moment to be seen by every service; compose starts this again.
known=$(temporal operator search-attribute list --namespace "$namespace")

attribute() {
	case $known in
	*"$1"*) ;;
	*) temporal operator search-attribute create --namespace "$namespace" --name "$1" --type "$2" ;;
	esac
}

attribute BurrowServer Keyword
attribute BurrowHost Keyword
attribute BurrowStep Keyword
attribute BurrowPhase Keyword
attribute BurrowImage Keyword
attribute BurrowRequestedBy Keyword
attribute BurrowNeedsAttention Bool
attribute BurrowCPU Int
attribute BurrowMemoryMiB Int
