// Package scheduler
package scheduler
