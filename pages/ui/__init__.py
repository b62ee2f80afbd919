"""What the pages share: state, cached model access, figures and components."""
