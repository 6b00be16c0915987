import './base.css';
import './form.css';
import './log.css';
import './login.css';
import './access.css';
