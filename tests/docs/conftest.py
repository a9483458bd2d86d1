from feature_tasks import make_config, make_task

__all__ = ["make_config", "make_task"]
